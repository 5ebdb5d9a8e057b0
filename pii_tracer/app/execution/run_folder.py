"""The folder of a run: what it runs, its journal, its evidence, its results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pii_tracer.app.settings import Settings
from pii_tracer.common.atomic_files import read_bounded, real_path, write_atomic
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import Refused, ReviewError, UsageError

if TYPE_CHECKING:
    from pii_tracer.app.persons_apart.later_findings import FoundSince
    from pii_tracer.app.persons_apart.later_findings_file import FoundFile
    from pii_tracer.review.plan_file import LoadedPlan


class RunInfo(Frozen):
    """What a run was started with; a resumed run takes exactly these. Paths are absolute; in the file, those inside the
    state folder are relative to it.

    state, inode: the state folder, and the inode of the run's own folder, when this was written (`write_info` fills
    them in). The device is not kept: its number changes with a restart.
    result: a further place for the final object, as the demo wants it. naive: file with the demo's naive panel.
    """

    plan_id: str
    plan_digest: str
    plan_file: str
    estate_file: str
    policy_file: str
    approvals: tuple[str, ...]
    trusted: str | None
    state: str
    inode: int | None = None
    result: str | None = None
    naive: str | None = None
    demo: bool = False
    estate_sections: Mapping[str, str] = {}
    """Digests of the estate file's parts; empty of runs of earlier versions."""

    def with_paths(self, change: Callable[[str], str]) -> RunInfo:
        """Every path but the state folder's changed."""
        one = {name: getattr(self, name) for name in _PATHS}
        changed = {name: None if path is None else change(path) for name, path in one.items()}
        return self.model_copy(update={**changed, "approvals": tuple(change(path) for path in self.approvals)})


CLOSED = "closed.json"
CLOSING = "closing"
"""Its member while the persons' values are being destroyed."""
PROOFS = "proofs"
"""The folder of a run with proofs of single requests and objects."""
_PATHS = ("plan_file", "estate_file", "policy_file", "trusted", "result", "naive")


@dataclass(frozen=True)
class RunFolder:
    """Paths inside `<state>/runs/<plan id>/`."""

    path: Path

    @property
    def info_file(self) -> Path:
        return self.path / "run.json"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def baseline(self) -> Path:
        return self.path / "baseline.json"

    @property
    def verdicts(self) -> Path:
        return self.path / "verdicts"

    @property
    def confirmations(self) -> Path:
        return self.path / "confirmations"

    @property
    def events(self) -> Path:
        return self.path / "events.ndjson"

    @property
    def evidence(self) -> Path:
        return evidence_of(self.attestation)

    @property
    def attestation(self) -> Path:
        return self.path / "attestation.json"

    def proof_of(self, request: str) -> Path:
        """The proof of one request, where it was asked for; ids are harmless in paths (`Request.id`)."""
        return self.path / PROOFS / f"request-{request}.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def closed(self) -> Path:
        return self.path / CLOSED

    def closed_at(self) -> str | None:
        """When the persons' values that the plan needed were destroyed; None where they may still be there."""
        at = self._of_closing().get("closed_at")
        return None if at is None else str(at)

    @property
    def is_closing(self) -> bool:
        """Whether somebody began to destroy them, and nobody wrote down that they are gone."""
        return self._of_closing().get(CLOSING) is True

    def _of_closing(self) -> dict[str, Any]:
        try:
            told = json.loads(self.closed.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    @property
    def state(self) -> Path:
        """The state folder that it lies in."""
        return self.path.parents[1]

    def info(self) -> RunInfo:
        """What the run was started with.

        Raises:
            UsageError: this is no run folder.
            Refused: the folder was moved, copied or put back from a copy since.
        """
        info = self.recorded()
        if (what := self.displaced(info)) is not None:
            raise Refused(
                what,
                where=str(self.path),
                todo=f"go on in {info.state}, if the run is there; if this is the newest folder of it and the only one"
                f" that is left, `pii-tracer resume {self.path.name} --moved`",
            )
        return info

    def recorded(self) -> RunInfo:
        """As `info`, wherever the folder lies now: for looking, and for what is compared with a digest.

        Raises:
            UsageError: this is no run folder.
        """
        try:
            info = RunInfo.model_validate_json(self.info_file.read_bytes())
        except (OSError, ValidationError):
            raise UsageError(
                "this folder is not a run of pii-tracer",
                where=str(self.path),
                todo="run `pii-tracer status` to list the runs",
            ) from None
        return info.with_paths(lambda path: str(self.state / path))

    def displaced(self, info: RunInfo) -> str | None:
        """Why this is not the folder that the run was begun in, in words; None where it is.

        A copy would run the plan a second time beside the first one, or again what was done after it was made.
        """
        began = Path(info.state) / "runs" / self.path.name
        if began != self.path and not _same(began, self.path):
            return f"the state folder was moved or copied: this run was begun in {info.state}"
        if info.inode is not None and info.inode != self.path.stat().st_ino:
            return "the run's folder was replaced: it was put back from a copy, which may be old"
        return None

    def write_info(self, info: RunInfo) -> None:
        """Write down what is run and where, before anything runs."""
        self.path.mkdir(parents=True, exist_ok=True)
        here = info.model_copy(update={"state": str(self.state), "inode": self.path.stat().st_ino})
        told = here.with_paths(self._inside)
        write_atomic(self.info_file, (told.model_dump_json(indent=2) + "\n").encode())

    def _inside(self, path: str) -> str:
        return os.path.relpath(path, self.state) if Path(path).is_relative_to(self.state) else path

    def adopt(self) -> None:
        """From here on this is the run's folder: a person says so, who knows that there is no other one.

        Files outside of the state folder are taken from beside it, where they came along.

        Raises:
            UsageError: this is no run folder.
            Refused: the folder that the run was begun in is still there, or somebody runs the plan.
        """
        from pii_tracer.run.lease import who_runs

        info = self.recorded()
        if self.displaced(info) is None:
            return
        began = RunFolder(Path(info.state) / "runs" / self.path.name)
        there = began.info_file.exists() and not _same(began.path, self.path)
        if there or who_runs(self.path) is not None:
            raise Refused(
                f"the folder in which this run was begun is still there: {began.path}"
                if there
                else f"the plan is being run: {who_runs(self.path)}",
                where=str(self.path),
                todo="resume the run in that folder; if that folder is older than this one, remove it first"
                if there
                else "wait until that run has ended",
            )
        self.write_info(info.with_paths(lambda path: self._moved_along(path, info.state)))

    def _moved_along(self, path: str, state: str) -> str:
        beside = os.path.normpath(self.state / os.path.relpath(path, state))
        return beside if Path(beside).exists() else path

    def approved(self) -> LoadedPlan:
        """The plan that the run was approved for: the run's own copy, or the plan file with the very same bytes.

        Raises:
            UsageError: this is no run folder, or neither has the plan any more; another plan would answer for this run.
            ReviewError: the plan is there, and this version cannot read it.
        """
        from pii_tracer.model.plan import digest_of
        from pii_tracer.review.plan_file import MAX_BYTES, parse_plan

        info = self.recorded()
        for path in (self.evidence / "plan.json", Path(info.plan_file)):
            try:
                raw = read_bounded(path, MAX_BYTES)
            except OSError:
                continue
            if digest_of(raw) != info.plan_digest:
                continue
            try:
                return parse_plan(raw, path.name, str(path))
            except ReviewError as error:
                todo = "use the version of pii-tracer that made the plan: the file is the one that was approved"
                raise ReviewError(error.what, where=str(path), todo=todo) from None
        raise UsageError(
            f"the plan of the run {self.path.name} was not found: its file is missing or holds a different plan",
            where=info.plan_file,
            todo=f"restore the plan file with the digest {info.plan_digest} at this path or as "
            f"{self.evidence / 'plan.json'}",
        )

    def settings(self) -> Settings:
        """The settings of the run."""
        info = self.info()
        return Settings(Path(info.estate_file), self.state)

    def last_result(self, *, looking_only: bool = False) -> dict[str, Any] | None:
        """The final object of the run, if it came to one, with what `verify` has found since.

        Raises:
            Refused, PlanError: as `found_since`, which says what looking_only is.
        """
        try:
            data = json.loads(self.result.read_bytes())
        except (OSError, ValueError):
            return None
        if not isinstance(data, dict):
            return None
        found = self.found_since(looking_only=looking_only)
        return found.in_result(data) if found else data

    def found_file(self, plan_digest: str) -> FoundFile:
        """Where that is kept."""
        from pii_tracer.app.persons_apart.later_findings_file import FoundFile

        return FoundFile(self.path, (self.journal, self.evidence / "journal.jsonl"), plan_digest)

    def found_since(self, *, looking_only: bool = False) -> FoundSince | None:
        """What `verify` found where the run had found nothing, and the run has not looked at again.

        looking_only: without the estate's key, by which one is noticed that was edited.

        Raises:
            Refused: it cannot be read, is not the newest, or was removed or edited; or nobody can say of which plan.
            PlanError: the estate's key is missing.
        """
        try:
            info = self.recorded()
        except UsageError:
            if self.found_file("").is_expected:
                raise Refused(
                    "nobody can say whether `pii-tracer verify` found anything of the run's persons: what the run was"
                    " started with cannot be read",
                    where=str(self.info_file),
                    todo="make the file readable, or restore it from its newest copy",
                ) from None
            return None
        file = self.found_file(info.plan_digest)
        return file.read(
            None if looking_only else lambda: Settings(Path(info.estate_file), self.state).key().found_mark
        )

    def result_known(self) -> tuple[dict[str, Any], str | None]:
        """The final object, empty without one, and why it is not known; for looking only."""
        try:
            return self.last_result(looking_only=True) or {}, None
        except Refused as error:
            return {}, error.what


def _same(one: Path, other: Path) -> bool:
    """Whether two names lead to one folder."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def evidence_of(attestation: Path) -> Path:
    """The evidence folder of an attestation lies beside it."""
    return attestation.parent / "evidence"


def folder_of(state: Path, plan_id: str) -> RunFolder:
    """The folder of a plan's run: a plan is applied once, so its id names it."""
    return RunFolder(real_path(state) / "runs" / plan_id)


def all_runs(state: Path) -> tuple[RunFolder, ...]:
    """Every run below a state folder, the oldest first."""
    found = [RunFolder(p.parent) for p in (real_path(state) / "runs").glob("*/run.json")]
    return tuple(sorted(found, key=lambda r: r.info_file.stat().st_mtime))


def nothing_left(result: Mapping[str, Any]) -> bool:
    """Whether a run has done all that its plan says: the whole erasure, or the part that the plan chose."""
    if result.get("state") == "complete":
        return True
    open_ = ("failed", "never_started", "waiting_until", "residue", "unverified")
    return bool(result.get("left_out")) and not any(result.get(name) for name in open_)


def over(result: Mapping[str, Any]) -> bool:
    """Whether a run has nothing more to do: nothing is left, or of some persons alone, who need a new plan."""
    open_ = any(result.get(name) for name in ("failed", "never_started", "waiting_until"))
    return nothing_left(result) or (bool(result.get("open_requests")) and not open_)


def choose_run(state: Path, name: str | None, *, unfinished: bool) -> RunFolder:
    """A run by its plan id, or the newest one (of those with something left to do).

    Raises:
        UsageError: there is none.
    """
    runs = all_runs(state)
    if name is not None:
        for run in runs:
            if run.path.name == name:
                return run
        raise UsageError(f"there is no run `{name}`", where=str(state), todo="run `pii-tracer status` to list the runs")
    if unfinished:
        runs = tuple(r for r in runs if not over(r.result_known()[0]))
    if not runs:
        raise UsageError(
            "there is no unfinished run" if unfinished else "there is no run",
            where=str(state),
            todo="start one with `pii-tracer apply`",
        )
    return runs[-1]
