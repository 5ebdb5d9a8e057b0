"""Rows of others that have the person's row key, in a table that writes no row keys down."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.planning.unmatched_rows.shared_row_keys import refuse_shared_keys
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.model.datasets import KeySet, Match, MatchTerm
from pii_tracer.model.errors import EstateError
from tests.hudistores import made_by_hand
from tests.verify.test_computed_again import estate

KEYS = {"user.uid": KeySet(name="user.uid", origin="uid", weak=False, values=(("s", "41"),))}


def looked(base: Path, *people: tuple[str, str], written: bool) -> None:
    for name, data in made_by_hand(*people, **({} if written else {"hoodie_populate_meta_fields": "false"})).items():
        file = base / "w" / "t" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        if file.suffix == ".parquet" and not written:
            table = pq.read_table(file)
            none = pa.nulls(table.num_rows, pa.string())
            meta = [one for one in table.column_names if one.startswith("_hoodie")]
            pq.write_table(pa.table({one: none if one in meta else table[one] for one in table.column_names}), file)
    [state] = discover(estate(), base).tables
    refuse_shared_keys(
        state,
        Match(terms=(MatchTerm(column="mail", key_set="user.uid", type="string"),)),
        KEYS,
        EstatePaths(estate(), base),
        kept=False,
    )


@pytest.mark.parametrize("written", [True, False])
def test_rows_without_a_written_key_do_not_share_one(tmp_path: Path, *, written: bool) -> None:
    looked(tmp_path, ("u-1", "41"), ("u-2", "42"), written=written)


def test_the_columns_of_the_key_tell_who_shares_one(tmp_path: Path) -> None:
    with pytest.raises(EstateError, match="1 record key of the person is in other people's rows"):
        looked(tmp_path, ("u-1", "41"), ("u-1", "42"), written=False)
