"""Everybody else's rows in objects of S3 that a run rewrites: counted before and after, by another reader."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.formats.plain_files import row_removal
from pii_tracer.lake.stores.s3.archive_versions import iter_version_bytes
from pii_tracer.lake.stores.s3.version_readability import hidden_versions
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.run.run_state import State
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify import object_rows
from pii_tracer.verify.byte_search import verify_objects
from pii_tracer.verify.row_checks import compare
from pii_tracer.verify.stores.s3.rewritten_rows import RewrittenRows, rewritten
from pii_tracer.verify.verdicts import Baseline, Bystanders, ByteVerdict
from tests.executors.stores.s3.s3_runs import _SETS, OTHERS, PERSON, PREFIX, Bucket, body
from tests.s3support import RESTORE_SECONDS, World, standin, world
from tests.waivers import MARKS

__all__ = ["standin", "world"]

FIRST, SECOND = f"{PREFIX}0.parquet", f"{PREFIX}1.parquet"


@dataclass
class Run:
    """An archive of two objects with her and others, and one without her."""

    world: World
    lake: Bucket
    plan: ErasurePlan
    journal: Path
    seen: ByteVerdict | None = None

    @classmethod
    def begun(cls, world: World, folder: Path, *, versioned: bool = True, **put: Any) -> Run:
        bucket = world.new("rows", versioned=versioned)
        world.put(bucket, FIRST, body(PERSON, *OTHERS), **put)
        world.put(bucket, SECOND, body(OTHERS[0], PERSON), **put)
        world.put(bucket, f"{PREFIX}2.parquet", body(*OTHERS), **put)
        windows = {"restore_hours": 12, "restore_check_minutes": 30}
        lake = Bucket(world.endpoint_url, bucket, windows=windows)
        return cls(world, lake, lake.plan(), folder / "journal.jsonl")

    @property
    def copy(self) -> Copy:
        return next(copy for copy in self.plan.copies if copy.kind == "ARCHIVE")

    def rows(self) -> RewrittenRows:
        planned = rewritten(self.plan.steps, self.copy)
        return RewrittenRows(self.copy, planned, build_patterns(_SETS), MARKS, self.written)

    def written(self) -> dict[tuple[str, str], str]:
        from pii_tracer.app.execution.run_verification import written
        from pii_tracer.run.journal import parse

        return written(parse(self.journal.read_bytes())[0]) if self.journal.exists() else {}

    def before(self) -> Baseline | None:
        rows, now = self.rows(), self.lake.now()
        planned = [*hidden_versions(self.world.client(), self.lake.name, now, sorted(rows.planned))]
        seen = verify_objects(self.copy, build_patterns(_SETS), planned)
        holding = {residue.file for residue in seen.residue}
        return rows.before(v for v in planned if f"{v.key}?versionId={v.version_id}" in holding)

    def erase(self) -> State:
        state = self.lake.attempt(self.plan, self.journal)
        assert state is not None
        return state.state

    def compared(self, before: Baseline | None) -> Bystanders | None:
        rows = self.rows()
        listed = iter_version_bytes(self.world.client(), self.lake.name, PREFIX, self.lake.now(), self.written())
        self.seen = verify_objects(self.copy, build_patterns(_SETS), rows.noticed(listed))
        after = rows.after(before) if before else None
        return compare(before, after) if before and after else None


@pytest.mark.parametrize("versioned", [True, False])
def test_nobody_else_is_lost_and_that_is_counted(world: World, tmp_path: Path, versioned: bool) -> None:
    run = Run.begun(world, tmp_path, versioned=versioned)
    before = run.before()
    assert before is not None
    assert sorted((s.rows_other, s.rows_person) for s in before.states) == [(1, 1), (3, 1)], "nobody writes the third"
    told = before.model_dump_json()
    assert not [name for name in (PERSON, FIRST, "parquet") if name in told]
    assert run.erase() is State.COMPLETE
    told_now = run.compared(before)
    assert told_now is not None
    assert (told_now.lost, told_now.equal, told_now.finding) == (0, True, None)


def test_a_rewrite_that_drops_somebody_else_is_found(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step counts its own rows; it would believe itself."""
    run = Run.begun(world, tmp_path)
    before, parquet = run.before(), row_removal._parquet

    def careless(data: bytes, persons: Any) -> Any:
        kept = parquet(data, persons)
        if kept.data is None:
            return kept
        return replace(kept, data=body(*pq.read_table(io.BytesIO(kept.data)).column("n").to_pylist()[1:]), made=None)

    monkeypatch.setattr(row_removal, "_parquet", careless)
    assert run.erase() is State.COMPLETE, "no step notices"
    told = run.compared(before)
    assert told is not None
    assert told.lost == 2
    assert told.finding == "2 rows of other people are gone or changed"


def test_an_object_that_is_gone_counts_as_lost(world: World, tmp_path: Path) -> None:
    run = Run.begun(world, tmp_path)
    before = run.before()
    assert run.erase() is State.COMPLETE
    [version] = world.client().list_object_versions(Bucket=run.lake.name, Prefix=FIRST)["Versions"]
    world.client().delete_object(Bucket=run.lake.name, Key=FIRST, VersionId=version["VersionId"])
    told = run.compared(before)
    assert told is not None
    assert told.lost == len(OTHERS)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("how", ["deletes it", "writes it again", "writes something else"])
def test_what_its_owner_did_after_the_rewrite_is_no_loss_and_no_claim(
    world: World, tmp_path: Path, how: str, versioned: bool
) -> None:
    """Without versions, its new version has the same name, `null`."""
    run = Run.begun(world, tmp_path, versioned=versioned)
    before = run.before()
    assert run.erase() is State.COMPLETE
    if how == "deletes it":
        world.client().delete_object(Bucket=run.lake.name, Key=FIRST)
    else:
        world.put(run.lake.name, FIRST, body("5", "6") if how == "writes it again" else b"uid,n\n5,5\n")
    assert run.compared(before) is None
    assert run.seen is not None
    assert (run.seen.residue, run.seen.unverified) == ((), ())


def test_what_its_owner_removed_before_the_rewrite_is_no_loss(world: World, tmp_path: Path) -> None:
    run = Run.begun(world, tmp_path, versioned=False)
    before = run.before()
    for key in (FIRST, f"{PREFIX}2.parquet"):
        world.client().delete_object(Bucket=run.lake.name, Key=key)
    assert run.erase() is State.COMPLETE
    told = run.compared(before)
    assert told is not None
    assert (told.lost, told.equal) == (0, True)


def test_an_object_that_was_not_counted_and_is_written_leaves_no_claim(world: World, tmp_path: Path) -> None:
    run = Run.begun(world, tmp_path)
    before = run.before()
    assert before is not None
    assert run.erase() is State.COMPLETE
    assert run.compared(before.model_copy(update={"states": before.states[1:]})) is None


def test_another_version_than_the_planned_one_is_not_counted(world: World, tmp_path: Path) -> None:
    run = Run.begun(world, tmp_path, versioned=False)
    world.put(run.lake.name, FIRST, body(PERSON, "5"))
    before = run.before()
    assert before is not None
    assert [state.rows_other for state in before.states] == [1]


def test_what_is_archived_again_is_not_compared(world: World, tmp_path: Path) -> None:
    """What the run wrote lies in Glacier, where nobody reads it without another restore."""
    run = Run.begun(world, tmp_path, StorageClass="GLACIER")
    assert run.before() is None
    assert run.erase() is State.WAITING
    world.advance(RESTORE_SECONDS + 1)
    before = run.before()
    run.lake.now.offset += timedelta(minutes=31)
    assert run.erase() is State.COMPLETE
    assert run.compared(before) is None


def test_what_cannot_be_read_is_not_compared(world: World, tmp_path: Path) -> None:
    run = Run.begun(world, tmp_path)
    rows = run.rows()
    damaged = [replace(v, _read=lambda: (b"PAR1 no file", {}, True)) for v in run_versions(run, rows)]
    assert rows.before(damaged) is None


def run_versions(run: Run, rows: RewrittenRows) -> list[Any]:
    return [*hidden_versions(run.world.client(), run.lake.name, run.lake.now(), sorted(rows.planned))]


HERS = st.sampled_from([int(PERSON), PERSON, f"uid {PERSON}", f"+{PERSON}", PERSON.encode(), float(PERSON)])
LEAVES = st.one_of(
    HERS,
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.decimals(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from([datetime(2026, 1, 2, 3, 4, 5, 123456), date(1990, 1, 2), Decimal(PERSON)]),
)
NAMES = st.sampled_from(["a", "b", PERSON, "Stra\udcdfe"])
CELLS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2) | st.just([*PERSON.encode()]),
    max_leaves=4,
)
SETS = (*_SETS, KeySet(name="user.dob", origin="users.dob", weak=False, values=(("subj_R", "1990-01-02"),)))


@given(st.lists(st.dictionaries(NAMES, CELLS, max_size=3), max_size=40), st.sampled_from([1, 3, 16]))
def test_rows_that_are_searched_together_are_those_that_are_searched_apart(
    rows: list[dict[str, Any]], apart: int
) -> None:
    """The slow model: each row by itself."""
    patterns = build_patterns(SETS)
    slow = {n for n, row in enumerate(rows) if _holds(row, patterns)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(object_rows, "_APART", apart)
        assert slow <= {*object_rows._suspects(rows, range(len(rows)), patterns)}


@pytest.mark.parametrize(
    ("hers", "others"),
    [
        pytest.param({"t": datetime(1990, 1, 2)}, {"t": datetime(2023, 1, 1)}, id="an instant as text"),
        pytest.param({"d": {PERSON: 1}}, {"d": {"x": 1}}, id="a key of a map"),
        pytest.param({"d": [*PERSON.encode()]}, {"d": [1.5]}, id="bytes as numbers"),
        pytest.param({"d": int(PERSON)}, {"d": "x"}, id="a number among texts"),
        pytest.param({"d": UUID(int=5), "Stra\udcdfe": PERSON}, {"d": UUID(int=7)}, id="a name that is no UTF-8"),
        pytest.param({None: PERSON}, {None: "y"}, id="more cells than the header"),
    ],
)
def test_where_her_row_stands_does_not_decide(hers: dict[Any, Any], others: dict[Any, Any]) -> None:
    """A row that is hers among few, and somebody else's among many, was a loss when another row went."""
    patterns = build_patterns(SETS)
    rows = [dict(others) for _ in range(40)]
    rows[20] = hers
    assert 20 in {*object_rows._suspects(rows, range(40), patterns)}


def _holds(row: dict[str, Any], patterns: Any) -> bool:
    found = object_rows.Collector(patterns)
    for column, value in row.items():
        found.cell(value, "data", column)
    return bool(found.hits())


def test_most_rows_are_not_searched_one_by_one() -> None:
    rows = [{"uid": n, "mail": f"{n}@example.org"} for n in range(2_000)]
    rows[700] = {"uid": int(PERSON), "mail": "her@example.org"}
    suspects = [*object_rows._suspects(rows, range(len(rows)), build_patterns(_SETS))]
    assert 700 in suspects
    assert len(suspects) <= 2 * object_rows._APART
