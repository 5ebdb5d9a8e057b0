"""The file that keeps what `verify` found of a run's persons since.

It is beside the journal, and the run's only way to hear of it: the journal is written by the runner alone, which takes
it over when it goes on. The file is there from the run's begin on, as the journal's first record says, and is sealed
with the estate's key: one that was removed or edited is noticed. So is an old one that was put back: each has a number,
and the number of the newest is kept outside of the run's folder. A closed run keeps its last number itself, too: nobody
can look for its persons again.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from pii_tracer.app.execution.run_folder import CLOSED
from pii_tracer.app.persons_apart.later_findings import FoundSince, Seal
from pii_tracer.common.atomic_files import sweep_temporaries, system_reason, write_atomic
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import Refused
from pii_tracer.run.journal import Kind

FILE = "found.json"
_LOCK = ".found.lock"
NEWEST = "found"
"""The folder of the state folder that has the number of each run's newest file."""
KEPT = {"found_since": "numbered"}
"""What the record of a run's begin says of the file. Runs that earlier versions began have none, or one without a
seal."""
_OF_FOUND = "found"
"""The member of `closed.json` with the number."""
_Form = TypeVar("_Form", bound=Frozen)
_Number = TypeVar("_Number", bound="Newest")


class Newest(Frozen):
    """The number of the newest file that was written for a run. seal: of all else."""

    plan_digest: str
    number: int
    seal: str = ""
    word: ClassVar[str] = "newest"

    def sealed(self: _Number, seal: Seal) -> _Number:
        """With its seal."""
        return self.model_copy(update={"seal": seal(f"{self.word} {self.number} {self.plan_digest}".encode())})


class NewestAtClose(Newest):
    """The same when the run was closed, as `closed.json` has it."""

    word: ClassVar[str] = "closed"


@dataclass(frozen=True)
class FoundFile:
    """The file in the folder of a run. journals: the run's own, and the one in its evidence."""

    folder: Path
    journals: tuple[Path, ...]
    plan_digest: str

    @property
    def _file(self) -> Path:
        return self.folder / FILE

    @property
    def newest_file(self) -> Path:
        """Where the number of the newest one is kept: an old run folder that is put back does not bring it along."""
        return self.folder.parents[1] / NEWEST / f"{self.folder.name}.json"

    @property
    def is_lost(self) -> bool:
        """Whether there was one, which is gone, or of which nobody can say whether it is the newest."""
        numbered = self.newest_file.exists() or self._at_close() is not None
        return self._is_kept and not (self._file.exists() and numbered)

    @property
    def is_expected(self) -> bool:
        """Whether there is one, or was."""
        return self._is_kept or self._file.exists()

    def read(self, seal: Callable[[], Seal] | None) -> FoundSince | None:
        """What was found since the run; None where nothing was, or, of a run that has no sealed file, only of another
        plan.

        seal: asked where there is something to compare; None for looking only.

        Raises:
            Refused: it is gone, cannot be read, is not the newest, or was not written with this key or for this run:
                nothing may be said of the run then.
        """
        # first: whoever writes meanwhile writes the file first
        newest = self._newest()
        found = self._read(self._file, FoundSince)
        kept = self._is_told_of or newest is not None
        if found is None:
            if kept:
                raise self._refused("is gone: the file was removed", self._file)
            return None
        to_be_compared = seal is not None and (found.seal or kept)
        if seal and to_be_compared and not hmac.compare_digest(found.sealed(seal()).seal, found.seal):
            raise self._refused("was changed: its seal is not that of the estate's key", self._file)
        if found.plan_digest != self.plan_digest:
            if kept:
                raise self._refused("was replaced: the file is that of another run", self._file)
            return None
        if kept:
            self._refuse_old(found, newest, seal)
        return found if found.places or found.of_copies else None

    def _newest(self) -> Newest | None:
        """What has the greatest number: the file, or the run itself when it was closed.

        Raises:
            Refused: the file cannot be read.
        """
        told = [one for one in (self._read(self.newest_file, Newest), self._at_close()) if one is not None]
        return max(told, key=lambda one: one.number, default=None)

    def _refuse_old(self, found: FoundSince, newest: Newest | None, seal: Callable[[], Seal] | None) -> None:
        numbers = self.folder / CLOSED if isinstance(newest, NewestAtClose) else self.newest_file
        may = "may be old: the file with the number of the newest one"
        if newest is None:
            raise self._refused(f"{may} is gone", numbers)
        sealed = seal is None or hmac.compare_digest(newest.sealed(seal()).seal, newest.seal)
        if not sealed or newest.plan_digest != self.plan_digest:
            raise self._refused(f"{may} was changed or replaced", numbers)
        if found.number < newest.number:
            raise self._refused("is old: a newer file was written since, which may contain more", self._file)

    def keep(self, found: FoundSince | None, seal: Seal) -> FoundSince:
        """Write it down, and give what stands there now. Raises `OSError` where that cannot be done."""
        told = found or FoundSince(at=datetime.now(timezone.utc), plan_digest=self.plan_digest)
        number = 1 + self._number
        told = told.model_copy(update={"number": number}).sealed(seal)
        newest = Newest(plan_digest=self.plan_digest, number=number).sealed(seal)
        sweep_temporaries(self.newest_file.parent)
        for file, content in ((self._file, told), (self.newest_file, newest)):
            write_atomic(file, (content.model_dump_json(indent=2) + "\n").encode())
        return told

    def at_close(self, seal: Seal) -> dict[str, Any]:
        """What `closed.json` says of the file; nothing of a run that has none."""
        if not self._is_kept:
            return {}
        last = NewestAtClose(plan_digest=self.plan_digest, number=self._number).sealed(seal)
        return {_OF_FOUND: last.model_dump(mode="json")}

    def _at_close(self) -> NewestAtClose | None:
        """What it says; None where the run is not closed, or it has no number that can be read."""
        try:
            return NewestAtClose.model_validate(_json_of(self.folder / CLOSED).get(_OF_FOUND))
        except ValidationError:
            return None

    @property
    def _number(self) -> int:
        """The greatest that is written anywhere."""
        at_close = _json_of(self.folder / CLOSED).get(_OF_FOUND)
        return max(_number_in(told) for told in (_json_of(self._file), _json_of(self.newest_file), at_close))

    def _read(self, file: Path, form: type[_Form]) -> _Form | None:
        """None where it is not there. Raises `Refused` where it cannot be read."""
        try:
            return form.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            why = system_reason(error) or "its content is not what this version writes"
            raise self._refused(f"cannot be read: {why} ({file.name})", file) from None

    def change(
        self, change: Callable[[FoundSince | None], FoundSince | None], seal: Seal, lost: FoundSince | None = None
    ) -> None:
        """Make of what was found what it is now, with nobody else at it.

        lost: what counts where the file is gone; without it, that is refused.

        Raises:
            Refused: what is there cannot be read.
            OSError: it cannot be written.
        """
        with found_locked(self.folder):
            gone = self.is_lost and lost is not None
            before = lost if gone else self.read(lambda: seal)
            found = change(before)
            if found != before or gone:
                self.keep(found, seal)

    @property
    def _is_kept(self) -> bool:
        """Whether there has to be one."""
        return self._is_told_of or self.newest_file.exists() or self._at_close() is not None

    @property
    def _is_told_of(self) -> bool:
        """Whether a journal says that there is one. Whether the journal is whole is asked elsewhere."""
        return any(KEPT.items() <= _begun(journal).items() for journal in self.journals)

    def _refused(self, why: str, file: Path) -> Refused:
        """file: the one that is missing or wrong."""
        out = f"move the run's folder out of `{self.folder.parent.name}`: nothing can be said of the run then"
        if (self.folder / CLOSED).exists():
            name = f"{NEWEST}/{file.name}" if file == self.newest_file else file.name
            todo = (
                f"restore {name} from a backup: the run is closed, so `pii-tracer verify` cannot search again. If there"
                f" is no backup, {out}"
            )
        else:
            first = "move it out of its folder, then " if file.exists() else ""
            todo = (
                f"put the file back from its newest copy. If there is none, {first}run `pii-tracer verify` with the"
                f" run's plan, and do nothing else before that has ended. If the plan is gone, too, {out}"
            )
        return Refused(f"what `pii-tracer verify` found of the run's persons {why}", where=str(file), todo=todo)


def _json_of(file: Path) -> dict[str, Any]:
    """The object in a file; an empty one where there is none."""
    try:
        told = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _number_in(told: object) -> int:
    """The number that an object says it has; 0 where it has none."""
    number = told.get("number") if isinstance(told, dict) else None
    return number if type(number) is int else 0


def _begun(journal: Path) -> dict[str, Any]:
    """What the record of the run's begin says; nothing where there is none: the run has not begun.

    Raises:
        Refused: the journal cannot be read, or a record up to that one.
    """
    try:
        with journal.open("rb") as lines:
            whole = (line for line in lines if line.endswith(b"\n"))  # a torn last one was never told to anybody
            for record in map(json.loads, whole):
                if record["kind"] == Kind.RUN_STARTED:
                    return dict(record["facts"])
    except FileNotFoundError:
        pass
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        why = system_reason(error) or "a record is not what this version writes"
        raise Refused(
            "nobody can say whether `pii-tracer verify` found anything of the run's persons: the begin of the run's"
            f" journal cannot be read ({why})",
            where=str(journal),
            todo="make the journal readable, or restore it from its newest copy",
        ) from None
    return {}


@contextmanager
def found_locked(folder: Path) -> Iterator[None]:
    """Nobody else reads what was found to change it meanwhile. Raises `OSError` where that cannot be had."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
