"""Places in a store that a named person waived, and of whom something came there later: by the real look, in each store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pii_tracer.app.persons_apart.residue_of_persons import ResidueOfPersons
from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.datasets import DatasetId, KeySet
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Copy, ErasurePlan, Gap
from pii_tracer.model.waivers import Waiver
from pii_tracer.verify.persons_left import PersonsLeft
from pii_tracer.verify.verdicts import CopyVerdict, RunVerdict
from tests.waivers import MARKS

FIRST, SECOND, THIRD = "subj_1", "subj_2", "subj_3"
MAILS = {FIRST: "pia.ek.4417@x.example", SECOND: "omar.bo.9082@x.example", THIRD: "lena.vo.6630@x.example"}
KEYS = (KeySet(name="user.mail", origin="mail", weak=False, values=tuple(MAILS.items())),)
UNTIL = datetime(2099, 1, 1, tzinfo=timezone.utc)


def csv(*persons: str) -> bytes:
    """A file with these persons, and with somebody else."""
    return "".join(f"{mail}\n" for mail in ("mail", *(MAILS[one] for one in persons), "nobody@x.example")).encode()


def estate_with(**more: Any) -> Estate:
    """An estate whose other tables do not matter. more: its stores."""
    users = {"name": "user", "source": "shop.users", "key": "uid"}
    data: dict[str, Any] = {"version": 1, "estate": "t", "environment": "local", "catalogs": {}, "lineage": {}}
    return Estate.model_validate({**data, "roots": ["tables"], "subjects": [users], **more})


def looks_at(estate: Estate, base: Path, **parts: Any) -> Verification:
    """The look of a plan for the persons."""
    requests = tuple(SimpleNamespace(subject=person) for person in MAILS)
    nothing: dict[str, Any] = {"copies": (), "examined": (), "steps": (), "not_keys": (), "gaps": ()}
    plan = ErasurePlan.model_construct(**{**nothing, "plan_id": "plan-1", "requests": requests, **parts})
    no_spark: Any = lambda: pytest.fail("no Spark")  # noqa: E731
    return Verification(plan, estate, base, KEYS, MARKS, no_spark, lambda: datetime.now(timezone.utc))


@dataclass(frozen=True)
class Place:
    """A place that is no copy of a plan for two persons, and whose gap of a kind was waived. files: those that may stay."""

    estate: Estate
    base: Path
    dataset: DatasetId
    kind: GapKind
    evidence: str = ""
    files: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        (self.base / "tables").mkdir(exist_ok=True)

    @property
    def verification(self) -> Verification:
        """The look for the persons."""
        marks = tuple(MARKS.of_file(self.dataset, sha256(data).hexdigest()) for data in self.files)
        waiver = Waiver(who="Asha Rao", why="looked at", until=UNTIL, of="g1")
        shown = {"reason": "seen", "evidence": self.evidence, "waiver": waiver, "seen": "g1", "files": marks}
        gap = Gap(id="gap-1", dataset=self.dataset, kind=self.kind, **shown)
        return looks_at(self.estate, self.base, gaps=(gap,))

    def files_found(self) -> set[str]:
        """Names of files with a person that no waiver covers, and why a place was not read."""
        seen = self.verification.elsewhere()
        assert not [mail for mail in MAILS.values() if mail in repr(seen)]
        told = {residue.file for verdict in seen for residue in verdict.residue}
        return told | {reason for verdict in seen for reason in verdict.unverified}

    def left(self) -> PersonsLeft:
        """Of whom something is left."""
        looks = self.verification
        return ResidueOfPersons(looks).left(RunVerdict(copies=()), looks.elsewhere())


def looked_at_again(place: Place, write: Callable[[str, bytes], object]) -> None:
    """The files of the waiver stay, and no others."""
    assert place.files_found() == set()
    write("stays.csv", csv(FIRST))
    assert place.files_found()
    stays = replace(place, files=(csv(FIRST),))
    assert stays.files_found() == set()
    write("later.csv", csv(FIRST, SECOND))
    [found] = stays.files_found()
    assert "later.csv" in found


def persons_apart(place: Place, write: Callable[[str, bytes], object], names: Iterable[str] = ("a", "b")) -> None:
    """What is left of one person is hers alone; what is of both is of both."""
    one, both = names
    assert place.left() == PersonsLeft()
    write(one, csv(FIRST))
    left = place.left()
    assert (left.persons, set(left.places)) == ({FIRST}, {FIRST})
    write(both, csv(FIRST, SECOND))
    assert place.left().persons == {FIRST, SECOND}


def persons_apart_in_copy(
    estate: Estate, base: Path, copy: Copy, write: Callable[[str, bytes], object], names: Iterable[str] = ("a", "b")
) -> None:
    """As `persons_apart`, of a copy: the others count as erased there."""
    one, both = names

    def looked() -> CopyVerdict:
        looks = looks_at(estate, base, copies=(copy,))
        return ResidueOfPersons(looks).told_apart(copy, looks.look(copy))

    assert (looked().residue, looked().unverified) == ((), ())
    write(one, csv(FIRST))
    assert (bool(looked().residue), looked().left_of) == (True, (FIRST,))
    write(both, csv(FIRST, SECOND))
    assert looked().left_of == (FIRST, SECOND)
    left = ResidueOfPersons(looks_at(estate, base, copies=(copy,))).left(RunVerdict(copies=(looked(),)), ())
    assert left.persons == {FIRST, SECOND}
