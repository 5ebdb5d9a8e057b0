"""A hold on some columns: keeping the whole row leaves what nobody has to keep; masking leaves only what is held."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.registry import build
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_CLEAN_LOG, DELTA_MASK_ROWS, DELTA_PURGE, DELTA_VACUUM
from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI,
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_SAVEPOINTS,
    HUDI_MASK_ROWS,
    HUDI_REBUILD_METADATA,
)
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_MASK_ROWS,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Match, Strategy
from pii_tracer.model.errors import RunError, ScanError
from pii_tracer.model.plan import Copy, HeldColumn, Mask
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from pii_tracer.verify.row_checks import Verifier, compare
from pii_tracer.verify.verdicts import ByteVerdict
from tests.executors.formats.hudi.test_hudi import make as make_hudi
from tests.executors.world import BY_ANY, BY_UID, EMAIL, UID, Keyring, Steps, context, frame, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = (Keyring.sets["uid"], Keyring.sets["email"])


def mask(*columns: str, held: tuple[str, ...], found_by: tuple[str, ...] = ()) -> Mask:
    kept = tuple(HeldColumn(name=name, holds=("H1",), until=None) for name in held)
    return Mask(columns=columns, held=kept, found_by=found_by)


LEDGER = mask("email", "id", held=("amount",), found_by=("uid",))
"""The amounts must stay, and whose they are; the address and the row's own number need not."""


@dataclass(frozen=True)
class Masked(Steps):
    """Steps of a copy of which a hold keeps columns."""

    mask: Mask = LEDGER

    @property
    def copy(self) -> Copy:
        return super().copy.model_copy(update={"strategy": Strategy.MASK_COLUMNS, "mask": self.mask})

    def bytes(self) -> ByteVerdict:
        return verify_bytes(self.copy, build_patterns(KEYS), self.location)


def columns_of(relation: DataFrame, where: str) -> dict[str, Counter[Any]]:
    """The values of each column, without their order."""
    rows = [row.asDict() for row in relation.where(where).collect()]
    names = [c for c in relation.columns if not c.startswith("_hoodie_")]
    return {name: Counter(row[name] for row in rows) for name in names}


MINE, OTHERS = f"uid = {UID}", f"uid != {UID}"

# --- Delta: versions, deletion vectors, the change feed, the log

RICH = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
REST = ((DELTA_PURGE, {}), (DELTA_VACUUM, {"retain_hours": 0}), (DELTA_CLEAN_LOG, {}))


def delta(spark: SparkSession, world: SparkEstate, name: str, match: Match = BY_UID, **more: Any) -> Masked:
    """Two files, the person in both."""
    folder = world.folder(f"mask/{name}")
    properties = ", ".join(f"'{k}'='{v}'" for k, v in more.pop("properties", {}).items())
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id BIGINT, uid BIGINT, email STRING, amount INT) USING delta"
        + (f" TBLPROPERTIES ({properties})" if properties else "")
    )
    for made in (rows(0, 20, (3, 4)), rows(20, 20, (31,))):
        frame(spark, made).write.format("delta").mode("append").save(str(folder))
    return Masked(context(world), "delta", None, folder, DELTA, match, **more)


def read(spark: SparkSession, steps: Steps) -> DataFrame:
    return spark.read.format("delta").load(str(steps.location))


def test_delta(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = delta(spark, spark_estate, "rich", properties=RICH)
    others, mine = columns_of(read(spark, steps), OTHERS), columns_of(read(spark, steps), MINE)
    verifier = Verifier(spark, KEYS)
    before = verifier.baseline(steps.copy)

    # what a hold on the whole copy leaves: everything, though nobody has to keep the address
    assert verifier.rows(steps.copy).states[0].rows == 3
    whole = steps.bytes()
    assert {r.where for r in whole.residue} >= {"data: email", "data: rows with values that are not held"}

    facts = steps.all((DELTA_MASK_ROWS, {"materialise": False}))
    assert facts[DELTA_MASK_ROWS]["rows_masked"] == 3
    shown = verifier.rows(steps.copy)
    assert (shown.states[0].rows, shown.states[0].held) == (0, 3)
    assert shown.rows_left > 0, "older versions show the whole rows"
    assert not steps.bytes().clean, "an UPDATE alone leaves the old files"

    steps.all(*REST)
    found = columns_of(read(spark, steps), MINE)
    assert found == {
        "id": Counter({None: 3}),
        "uid": mine["uid"],
        "email": Counter({None: 3}),
        "amount": mine["amount"],
    }
    assert columns_of(read(spark, steps), OTHERS) == others
    assert verifier.rows(steps.copy).rows_left == 0
    after = steps.bytes()
    assert after.clean, after
    assert {(h.column, h.key_set) for h in after.held} == {("uid", "uid")}
    assert compare(before, verifier.baseline(steps.copy)).model_dump(exclude={"copy_id"}) == {
        "lost": 0,
        "equal": True,
        "missing": (),
        "lapsed": 0,
        "added": 0,
    }


def test_a_column_is_excused_and_not_a_value(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """The held number stands as text in a column that nothing keeps, too: the same text, and residue all the same."""
    steps = delta(spark, spark_estate, "same_text", BY_ANY, mask=mask("email", "id", held=("uid", "amount")))
    others = columns_of(read(spark, steps), OTHERS)
    verifier = Verifier(spark, KEYS)
    before = verifier.baseline(steps.copy)
    steps.all((DELTA_MASK_ROWS, {"materialise": False}), *REST)
    assert steps.bytes().clean, steps.bytes().residue
    assert EMAIL not in columns_of(read(spark, steps), "true")["email"], "a key that is not held becomes NULL, too"
    assert columns_of(read(spark, steps), OTHERS) == others
    assert compare(before, verifier.baseline(steps.copy)).equal
    frame(spark, [(77, 1077, str(UID), 5)]).write.format("delta").mode("append").save(str(steps.location))
    assert "data: email" in {r.where for r in steps.bytes().residue}


def test_a_file_that_nothing_references_and_holds_more_is_found(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Its rows match in the held column only; what else stands in them is no value that anybody could search for."""
    steps = delta(spark, spark_estate, "stray", mask=mask("amount", "id", held=("uid", "email")))
    old = next(Path(steps.location).glob("*.parquet")).read_bytes()
    steps.all((DELTA_MASK_ROWS, {"materialise": False}), *REST)
    assert steps.bytes().clean, steps.bytes().residue
    (steps.location / "old.parquet").write_bytes(old)
    assert [r.form for r in steps.bytes().residue] == ["row"]


def test_a_row_that_would_be_nobodys_is_refused(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """One row has the person's address and another key: without the address nobody would know whose amount it is."""
    steps = delta(spark, spark_estate, "ownerless", BY_ANY, mask=mask("email", "id", held=("uid", "amount")))
    frame(spark, [(99, 4711, EMAIL, 5)]).write.format("delta").mode("append").save(str(steps.location))
    before = columns_of(read(spark, steps), "true")
    with pytest.raises(ScanError, match="nobody would then know whose the held values are"):
        Verifier(spark, KEYS).baseline(steps.copy)
    with pytest.raises(RunError, match="1 row is found only by email"):
        steps.once(DELTA_MASK_ROWS, materialise=False)
    assert columns_of(read(spark, steps), "true") == before


def test_held_data_that_is_lost_or_changed_is_seen(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = delta(spark, spark_estate, "harmed")
    verifier = Verifier(spark, KEYS)
    before = verifier.baseline(steps.copy)
    spark.sql(f"UPDATE delta.`{steps.location}` SET amount = amount + 1 WHERE id = 3")
    assert not compare(before, verifier.baseline(steps.copy)).equal
    spark.sql(f"DELETE FROM delta.`{steps.location}` WHERE uid = {UID}")
    found = compare(before, verifier.baseline(steps.copy))
    assert (found.lost, found.equal) == (3, False)


def test_after_a_crash_the_statement_is_known_to_be_done(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Killed between the statement and its record: a probe sees it done; half of it (one of two keys) is not done."""
    steps = delta(spark, spark_estate, "crash", BY_ANY)
    step = steps.step(DELTA_MASK_ROWS, materialise=False)
    assert steps.probe(DELTA_MASK_ROWS) is Progress.PARTIAL
    spark.sql(f"UPDATE delta.`{steps.location}` SET email = NULL, id = NULL WHERE id = 3")
    assert steps.probe(DELTA_MASK_ROWS) is Progress.PARTIAL
    build(steps.ctx)["delta"].run(step, steps.copy)
    assert steps.probe(DELTA_MASK_ROWS) is Progress.DONE
    again = build(steps.ctx)["delta"].run(step, steps.copy)
    assert again.facts["rows_masked"] == 0
    assert again.facts["snapshot_before"] == again.facts["snapshot_after"], "nothing was written twice"


# --- Iceberg: the head, a branch and a tag

ICEBERG_REST: tuple[tuple[Action, dict[str, Any]], ...] = (
    (ICEBERG_REWRITE_MANIFESTS, {}),
    (ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1}),
    (ICEBERG_REMOVE_ORPHANS, {}),
)


def test_iceberg(spark: SparkSession, spark_estate: SparkEstate) -> None:
    table, refs = "lake.mask.t", ["branch audit", "tag q3"]
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg"
        " TBLPROPERTIES ('format-version'='2', 'write.update.mode'='merge-on-read')"
    )
    frame(spark, rows(0, 20, (3, 4))).writeTo(table).append()
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH audit")
    spark.sql(f"ALTER TABLE {table} CREATE TAG q3")
    frame(spark, rows(20, 20, (31,))).writeTo(table).append()
    folder = spark_estate.base / "warehouse" / "lake" / "mask" / "t"
    steps = Masked(context(spark_estate), "iceberg", table, folder, ICEBERG)
    others, mine = columns_of(spark.table(table), OTHERS), columns_of(spark.table(table), MINE)
    verifier = Verifier(spark, KEYS)
    before = verifier.baseline(steps.copy)

    assert steps.all((ICEBERG_MASK_ROWS, {}))[ICEBERG_MASK_ROWS]["rows_masked"] == 3
    assert not steps.bytes().clean, "an UPDATE alone leaves the old files"
    steps.once(ICEBERG_REWRITE_FILES)
    for ref in refs:
        kind, _, ref_name = ref.partition(" ")
        assert {s.state: s.rows for s in verifier.rows(steps.copy).states}[ref] == 2
        assert steps.once(ICEBERG_REWRITE_REF, ref=ref_name, kind=kind)["rows_masked"] == 2
        assert steps.probe(ICEBERG_REWRITE_REF, ref=ref_name, kind=kind) is Progress.DONE
    steps.all(*ICEBERG_REST)

    found = columns_of(spark.table(table), MINE)
    assert found == {
        "id": Counter({None: 3}),
        "uid": mine["uid"],
        "email": Counter({None: 3}),
        "amount": mine["amount"],
    }
    assert columns_of(spark.table(table), OTHERS) == others
    assert verifier.rows(steps.copy).rows_left == 0
    assert steps.bytes().clean, steps.bytes()
    assert compare(before, verifier.baseline(steps.copy)).equal
    step = steps.step(ICEBERG_MASK_ROWS)
    again = build(steps.ctx)["iceberg"].run(step, steps.copy)
    assert again.facts["snapshot_before"] == again.facts["snapshot_after"], "nothing was written twice"


# --- Hudi: old slices, log files, the metadata table


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.nightly), "mor"])
def test_hudi(spark: SparkSession, spark_estate: SparkEstate, kind: str) -> None:
    made = make_hudi(spark, spark_estate, f"masked_{kind}", kind)
    kept = mask("email", held=("id", "amount"), found_by=("uid",))
    steps = Masked(made.ctx, "hudi", made.table, made.location, HUDI, BY_UID, kept)
    table = str(steps.table)
    others, mine = columns_of(spark.table(table), OTHERS), columns_of(spark.table(table), MINE)
    before = Verifier(spark, KEYS).baseline(steps.copy)

    assert steps.all((HUDI_MASK_ROWS, {}))[HUDI_MASK_ROWS]["rows_masked"] == 3
    assert not steps.bytes().clean, "an UPDATE alone leaves the old slices"
    compact = ((HUDI_COMPACT, {}),) if kind == "mor" else ()
    steps.all((HUDI_DELETE_SAVEPOINTS, {}), *compact, (HUDI_CLEAN, {}), (HUDI_REBUILD_METADATA, {}))

    assert columns_of(spark.table(table), MINE) == {**mine, "email": Counter({None: 3})}
    assert columns_of(spark.table(table), OTHERS) == others
    assert Verifier(spark, KEYS).rows(steps.copy).rows_left == 0
    assert steps.bytes().clean, steps.bytes()
    assert compare(before, Verifier(spark, KEYS).baseline(steps.copy)).equal


def test_hudi_refuses_where_a_record_key_is_not_one_row(spark: SparkSession, spark_estate: SparkEstate) -> None:
    made = make_hudi(spark, spark_estate, "twice", "cow")
    spark.conf.set("hoodie.spark.sql.insert.into.operation", "insert")
    try:
        spark.sql(f"INSERT INTO {made.table} VALUES (3, 5555, 'someone.else@example.net', 9)")
    finally:
        spark.conf.unset("hoodie.spark.sql.insert.into.operation")
    kept = mask("email", held=("id", "amount"), found_by=("uid",))
    steps = Masked(made.ctx, "hudi", made.table, made.location, HUDI, BY_UID, kept)
    before = columns_of(spark.table(str(made.table)), "true")
    with pytest.raises(RunError, match="record keys"):
        steps.once(HUDI_MASK_ROWS)
    assert columns_of(spark.table(str(made.table)), "true") == before
