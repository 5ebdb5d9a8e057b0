"""CSV tables of Spark with options, as a metastore or Unity Catalog describes them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pii_tracer.lake.catalogs.hive.spark_text_tables import spark_text_table
from pii_tracer.lake.catalogs.hive.table_kind_detection import Kept, Refused, kept_as
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.hive_text.columns import UnreadText
from pii_tracer.model.hive_text.layout import Serde, TextLayout
from tests.lake.catalogs.test_unity import lake, unity
from tests.unitysupport import Unity, token

__all__ = ["token", "unity"]

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "uid", "type": "long", "nullable": True, "metadata": {}},
            {
                "name": "note",
                "type": "string",
                "nullable": True,
                "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"},
            },
            {"name": "day", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
LAYOUT = TextLayout(serde=Serde.SPARK, delimiter="|", escape="\\", null="", quote='"')


def table(options: dict[str, str], **parameters: str) -> Any:
    serde = SimpleNamespace(
        parameters={"serialization.format": "1", "path": "/lake/t", **options},
        serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    )
    placeholder = [SimpleNamespace(name="col", type="array<string>")]
    storage = SimpleNamespace(
        location="/lake/t",
        cols=placeholder,
        inputFormat="org.apache.hadoop.mapred.SequenceFileInputFormat",
        parameters={},
        storedAsSubDirectories=False,
        serdeInfo=serde,
    )
    return SimpleNamespace(
        tableType="EXTERNAL_TABLE",
        parameters={"spark.sql.sources.provider": "csv", **parameters},
        partitionKeys=[SimpleNamespace(name="day", type="string")],
        sd=storage,
    )


def test_options_are_the_layout_and_the_schema_has_the_columns() -> None:
    made = table({"sep": "|"}, **{"spark.sql.sources.schema": SCHEMA})
    kept = kept_as(made)
    assert isinstance(kept, Kept)
    assert kept.layout == LAYOUT
    partition = SimpleNamespace(sd=made.sd, values=["1"])
    text = spark_text_table(made, LAYOUT, [("day=1", partition)])
    assert [(c.name, c.type, c.whole, c.most) for c in text.columns] == [
        ("uid", "string", 64, None),
        ("note", "string", None, 9),
    ]
    assert text.keys == ("day",)
    halves = {"spark.sql.sources.schema.numParts": "2"}
    halves |= {f"spark.sql.sources.schema.part.{n}": part for n, part in enumerate((SCHEMA[:99], SCHEMA[99:]))}
    assert spark_text_table(table({}, **halves), LAYOUT, []) == text
    for folder in (None, "day=2", "1"):
        with pytest.raises(UnreadText, match="partition"):
            spark_text_table(made, LAYOUT, [(folder, partition)])


def test_a_header_alone_needs_no_columns_and_other_options_are_refused_by_name() -> None:
    with_header = kept_as(table({"header": "true", "inferSchema": "true"}))
    assert isinstance(with_header, Kept)
    assert with_header.layout is None
    for options, told in (({"lineSep": ";"}, "`lineSep`"), ({"asha": "asha"}, "1 option of Spark's")):
        refused = kept_as(table(options))
        assert isinstance(refused, Refused)
        assert told in refused.reason
        assert "asha" not in refused.reason
    for schema in ("{}", "[", '{"fields": [1]}', '{"fields": [{"name": "_corrupt_record", "type": "string"}]}'):
        with pytest.raises(UnreadText):
            spark_text_table(table({}, **{"spark.sql.sources.schema": schema}), LAYOUT, [])


@pytest.mark.usefixtures("token")
def test_unity_catalog_has_the_columns_and_their_order(unity: Unity, tmp_path: Path) -> None:
    folder = tmp_path / "warehouse" / "texts" / "day=1"
    folder.mkdir(parents=True)
    (folder / "part-0").write_bytes(b"007|'a|b'\n")
    columns = [
        {"name": "uid", "type_text": "bigint"},
        {"name": "note", "type_text": "string"},
        {"name": "day", "type_text": "string", "partition_index": 0},
    ]
    options = {"option.sep": "|", "option.quote": "'"}
    unity.table("main.raw.texts", folder.parent.as_uri(), "CSV", properties=options, columns=columns)
    untold = [{"name": "uid", "type_name": "LONG"}]
    unity.table(
        "main.raw.untold", (tmp_path / "warehouse" / "other").as_uri(), "CSV", properties=options, columns=untold
    )
    found = discover(lake(unity), tmp_path)
    (state,) = (one for one in found.tables if one.table == "main.raw.texts")
    paths = EstatePaths(lake(unity), tmp_path)
    assert read_columns(state, ["uid", "note", "day"], paths).to_pylist() == [{"uid": "7", "note": "a|b", "day": "1"}]
    assert "columns have no types" in next(gap.reason for gap in found.gaps if "untold" in gap.evidence)


def test_layouts_of_hive_are_written_as_before() -> None:
    """Plans name them; one that was approved must not look changed to a later version."""
    told = json.loads(TextLayout(serde=Serde.DELIMITED, delimiter=",").model_dump_json())
    assert not {"quote", "empty", "comment", "multi_line"} & told.keys()
    assert TextLayout.model_validate_json(LAYOUT.model_dump_json()) == LAYOUT
