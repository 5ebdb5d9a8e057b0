"""What was not decoded again is said: in the verdict of a copy, in the journal's facts and in the run's report."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.verify_step import VerifyExecutor, read_verdict
from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Carries, CopyKind, DatasetId, Format, KeySet, Strategy
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.scan.scan_ledger import ScanLedger
from tests.waivers import MARKS

FILES = 120
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)


def no_spark() -> Any:
    raise AssertionError("no rows are read here")


def test_files_that_are_known_are_not_called_decoded(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.csv").write_text(f"id,note\n{number},nobody\n")
    copy = Copy(
        id="c-lake",
        kind=CopyKind.SOURCE,
        dataset=DatasetId(namespace="file", name=str(folder)),
        table=None,
        location=str(folder),
        format=Format.CSV,
        carries=Carries.KEY,
        strategy=Strategy.DELETE_BY_KEY,
        columns=(),
        lineage=(),
        reason="",
    )
    nothing: dict[str, Any] = {"copies": (copy,), "examined": (), "steps": (), "gaps": ()}
    verification = Verification(
        plan=ErasurePlan.model_construct(**nothing),
        estate=Estate(
            version=1,
            estate="t",
            environment="local",
            catalogs={},
            roots=(),
            lineage=LineageSources(),
            subjects=(Subject(name="person", source="t", key="id"),),
        ),
        base=tmp_path,
        keys=(KeySet(name="mail", origin="mail", weak=False, values=(("person", "ipsita.nayak@mail.example"),)),),
        marks=MARKS,
        spark=no_spark,
        now=lambda: NOW,
        ledger=ScanLedger(tmp_path / "ledger.sqlite", b"k" * 32, lambda: NOW, lambda told: None),
    )
    executor = VerifyExecutor(verification, tmp_path / "verdicts")
    step = Step.model_construct(id="s1", copy_="c-lake", action=Action.VERIFY_COPY)

    first = executor.run(step, copy).facts
    assert first["files_decoded"] == FILES
    assert "reading" not in first
    verdict = read_verdict(tmp_path / "verdicts", "c-lake")
    assert verdict is not None
    assert verdict.reading is None

    again = executor.run(step, copy).facts
    none_of_parquet = {"shaped": 0, "chunks": 0, "left": 0, "drawn": 0, "in_parts": 0, "unfetched": 0, "refetched": 0}
    known_before = {"now": 3, "before": FILES - 3, "by_store": 0, "again": 3, "oldest": "2026-11-21T10:00:00Z"}
    assert again["reading"] == {**known_before, **none_of_parquet}
    assert again["files_decoded"] == 3
    known = read_verdict(tmp_path / "verdicts", "c-lake")
    assert known is not None
    assert known == verdict.model_copy(update={"reading": known.reading})
    assert known.erased
