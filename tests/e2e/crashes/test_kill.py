"""SIGKILL on real tables: the run and its engine die in the middle of an act, and the resumed run ends the work.

The estate is built, planned and approved once; for each case its folder is put back as it was.
"""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.review.plan_file import load_plan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.journal_truncation import end_file
from tests.e2e import clinic
from tests.e2e.processes import Ended, history, run_until
from tests.leaks import leaks, watched_spark
from tests.run.history import violations
from tests.run.placed import put_journal

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@dataclass(frozen=True)
class Approved:
    """An approved plan over the clinic, and what the estate was before anything ran."""

    base: Path
    kept: Path
    before: dict[str, list[str]]
    words: tuple[str, ...]
    """That apply it."""

    @property
    def file(self) -> Path:
        return self.base / "clinic.plan.json"

    @property
    def journal(self) -> Path:
        plan = load_plan(self.file).plan
        return self.base / "state" / "runs" / plan.plan_id / "journal.jsonl"

    def put_back(self) -> None:
        shutil.rmtree(self.base)
        shutil.copytree(self.kept, self.base, symlinks=True)


Point = Callable[[Approved], bool]


@pytest.fixture(scope="module")
def approved(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Approved]:
    folder = tmp_path_factory.mktemp("kill")
    base = folder / "clinic"
    base.mkdir()
    clinic.build(base, spark)
    words = clinic.approve(base)
    shutil.copytree(base, folder / "kept", symlinks=True)
    yield Approved(base, folder / "kept", rows(base), tuple(words))
    shutil.rmtree(folder)


def rows(base: Path) -> dict[str, list[str]]:
    """All rows of every table as text, sorted; read without Spark, which may remember what was put back."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable
    from pyiceberg.table import StaticTable

    tables = {"charts": DeltaTable(base / "tables" / "charts").to_pyarrow_table()}
    for folder, kind in (("extract", "parquet"), ("monthly", "orc"), ("feed", "json")):
        tables[folder] = ds.dataset(base / "tables" / folder, format=kind).to_table()
    for name in ("visits", "mailing", "ward_costs"):
        metadata = base / "warehouse" / "core" / name / "metadata"
        newest = max(metadata.glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
        tables[name] = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    return {name: sorted(str(row) for row in table.to_pylist()) for name, table in tables.items()}


# in quotes: another patient's number begins with this one's
MINE = (f"'{clinic.PATIENT}'", hashlib.sha256(clinic.EMAIL.lower().encode()).hexdigest())


def others(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Everybody else's rows; totals hold everybody and are compared by themselves."""
    return {
        name: [row for row in table if not any(mine in row for mine in MINE)]
        for name, table in found.items()
        if name != "ward_costs"
    }


def begun(step: str) -> Point:
    """The step's intent is written: its act is going on, or a quick one was over before anybody looked."""
    return lambda at: _written(at, Kind.STEP_INTENT, step)


def ended(step: str) -> Point:
    """The step's result is written: it is not verified yet, unless that was quicker."""
    return lambda at: _written(at, Kind.STEP_RESULT, step)


def deleted_and_not_told(at: Approved) -> bool:
    """Iceberg has committed the delete, and nobody has written down that it did."""
    committed = at.base / "warehouse" / "core" / "visits" / "metadata" / "v2.metadata.json"
    return committed.exists() and _written(at, Kind.STEP_INTENT, f"{VISITS}/01-iceberg-delete-rows")


def first_lines(at: Approved) -> bool:
    return bool(history(at.journal))


def _written(at: Approved, kind: Kind, step: str) -> bool:
    return any(record.kind is kind and record.facts["step"] == step for record in history(at.journal))


@dataclass(frozen=True)
class Kill:
    """Where a process dies: at a point of the run, some seconds after it."""

    point: Point
    after: float = 0.0
    by: signal.Signals = signal.SIGKILL


VISITS, CHARTS, EXTRACT, MAILING = "c-med.core.visits", "c-care.charts", "c-extract", "c-med.core.mailing"
# each case: `apply` dies at the first, `resume` at each of the others, and the last `resume` comes to the end
CASES = [
    pytest.param(
        [
            Kill(deleted_and_not_told),
            Kill(begun(f"{VISITS}/04-iceberg-expire-snapshots"), 0.5, signal.SIGINT),
        ],
        id="the answer of a delete is lost, then in the middle of an act that cannot be undone",
    ),
    pytest.param(
        [
            Kill(ended(f"{VISITS}/04-iceberg-expire-snapshots")),
            Kill(begun(f"{CHARTS}/03-delta-vacuum"), 2.0, signal.SIGTERM),
        ],
        id="after an act that cannot be undone, before its verification",
        marks=[pytest.mark.slow, pytest.mark.nightly],
    ),
    pytest.param(
        [
            Kill(first_lines),
            Kill(begun(f"{VISITS}/01-iceberg-delete-rows"), 0.4),
            Kill(begun(f"{CHARTS}/04-delta-clean-log"), 1.0),
            Kill(begun(f"{EXTRACT}/01-files-rewrite")),
            Kill(begun(f"{MAILING}/05-iceberg-remove-orphans"), 0.3),
            Kill(begun("c-med.core.ward_costs/01-iceberg-rebuild"), 0.3),
            Kill(begun("c-med.core.ward_costs/99-verify")),
        ],
        id="again and again, to the last step",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize("kills", CASES)
def test_killed_and_resumed_to_the_end(approved: Approved, kills: list[Kill], tmp_path: Path) -> None:
    approved.put_back()
    base = approved.base
    assert rows(base) == approved.before
    words = [*approved.words]
    watched = watched_spark(tmp_path / "spark")
    for number, kill in enumerate(kills):
        died = run_until(
            words,
            tmp_path / f"{number}",
            lambda at=kill: at.point(approved),
            after=kill.after,
            more=watched,
            by=kill.by,
        )
        assert died.killed, (number, died)
        if kill.by is not signal.SIGKILL:
            assert_told_to_resume(approved, died)
        assert not (approved.journal.parent / "attestation.json").exists(), "attested before the end"
        words = ["resume", "--state", str(base / "state")]
        if number == 0 and len(history(approved.journal)) > 5:
            assert_a_cut_is_refused(approved, words, tmp_path)
    last = run_until([*words, "--format", "json"], tmp_path / "last", more=watched)
    assert last.code == 0, last
    assert_erased(approved, json.loads(last.stdout), history(approved.journal))
    assert_finished_is_left_alone(approved, words, tmp_path)
    assert_nobody_is_named(approved, tmp_path)


@pytest.mark.slow
def test_an_engine_that_dies_alone_is_told_and_resumed_from(approved: Approved, tmp_path: Path) -> None:
    """Spark is killed in the middle of a rewrite, as by the kernel when memory runs out; the command lives on."""
    approved.put_back()
    base = approved.base
    words = [*approved.words, "--format", "json"]
    point = begun(f"{VISITS}/02-iceberg-rewrite-files")
    died = run_until(words, tmp_path / "a", lambda: point(approved), after=0.3, engine_alone=True, seconds=300)
    assert died.killed
    assert died.code == 7, died
    told = json.loads(died.stdout)
    assert told["state"] == "partial"
    failed = {found["step"]: found["reason"] for found in told["failed"]}
    assert f"{VISITS}/02-iceberg-rewrite-files" in failed
    assert {reason.partition(":")[0] for reason in failed.values()} == {
        "the Java process of Spark ended during the work"
    }
    assert not (approved.journal.parent / "attestation.json").exists()
    words = ["resume", "--state", str(base / "state"), "--format", "json"]
    last = run_until(words, tmp_path / "b")
    assert last.code == 0, last
    assert_erased(approved, json.loads(last.stdout), history(approved.journal))


def assert_a_cut_is_refused(approved: Approved, words: list[str], logs: Path) -> None:
    """Without its last four records the journal is not gone on with, also when its end file was cut with it."""
    journal, end = approved.journal, end_file(approved.journal)
    whole, ended, before = journal.read_bytes(), end.read_bytes(), rows(approved.base)
    cut = b"".join(whole.splitlines(keepends=True)[:-4])
    for both, said in ((False, "the end of the journal is missing"), (True, "the journal")):
        put_journal(journal, cut)
        if not both:
            end.write_bytes(ended)
        told = run_until(words, logs / f"cut-{both}")
        assert told.code == 1, told
        assert said in told.stderr
        assert "plan again" in told.stderr
        assert journal.read_bytes() == cut
    assert rows(approved.base) == before
    journal.write_bytes(whole)
    end.write_bytes(ended)


def assert_told_to_resume(approved: Approved, stopped: Ended) -> None:
    """In few words, without traces of the engine, which is gone."""
    assert stopped.code == 7, stopped
    told = stopped.stderr[stopped.stderr.index("error: the run was stopped") :]
    assert f"`pii-tracer resume {approved.journal.parent.name} --state {approved.base / 'state'}`" in told
    assert (len(told.splitlines()), "Traceback" in stopped.stderr) == (3, False), stopped
    kinds = [record.kind for record in history(approved.journal)]
    assert kinds[-1] is Kind.STEP_INTENT, "it failed nowhere"


def assert_nobody_is_named(approved: Approved, logs: Path) -> None:
    """In what the processes said, what Spark noted of every statement, and what the run has left."""
    assert any(path.stat().st_size for path in (logs / "spark" / "events").iterdir())
    assert list((logs / "spark" / "tmp").glob("pii-tracer-spark-*.log"))
    assert leaks(clinic.PERSON, [logs, approved.base / "state", *approved.base.glob("clinic.*")]) == []


def assert_erased(approved: Approved, result: dict[str, Any], records: tuple[Record, ...]) -> None:
    assert result["state"] == "complete", result
    assert (result["copies_total"], result["copies_erased"]) == (7, 7)
    assert (result["residue"], result["unverified"], result["bystander_rows_lost"]) == ([], [], 0)
    assert result["rows_erased"] == 12, "a count whose record was lost is not left out"
    after = rows(approved.base)
    assert others(after) == others(approved.before)
    assert {name: table for name, table in after.items() if name != "ward_costs"} == others(after)
    visits = [ast.literal_eval(row) for row in after["visits"]]
    totals = {v["ward"]: sum(w["cost"] for w in visits if w["ward"] == v["ward"]) for v in visits}
    assert after["ward_costs"] == sorted(str({"ward": ward, "total": total}) for ward, total in totals.items())
    assert violations(records, load_plan(approved.file).plan) == []
    assert Counter(r.kind for r in records)[Kind.STEP_VERIFIED] == len(load_plan(approved.file).plan.steps)


def assert_finished_is_left_alone(approved: Approved, words: list[str], logs: Path) -> None:
    """The finished run again: not one more line, the same proof."""
    folder = approved.journal.parent
    before = {name: (folder / name).read_bytes() for name in ("journal.jsonl", "attestation.json")}
    again: Ended = run_until([*words, folder.name], logs / "again")
    assert again.code == 0, again
    assert {name: (folder / name).read_bytes() for name in before} == before
