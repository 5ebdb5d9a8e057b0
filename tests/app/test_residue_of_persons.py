"""Whose residue is: found out by looks at real files, and never claimed of anybody whom the second look does not clear."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.execution import non_copies, verify_step
from pii_tracer.app.execution.verify_step import VerifyExecutor
from pii_tracer.app.persons_apart.residue_of_persons import ResidueOfPersons
from pii_tracer.app.persons_apart.values_by_person import PartOfPatterns, each_person
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.settings import moment
from pii_tracer.app.verification import Verification
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Carries, DatasetId, KeySet
from pii_tracer.model.plan import Copy, Examined
from pii_tracer.proof.open_requests import left_in, left_of_step
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.scan.folder_scan import scan_bytes, scan_tree
from pii_tracer.scan.hits import person_in
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify import byte_search
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.persons_left import NOBODY, PersonsLeft
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, RowVerdict, RunVerdict, StateRows, with_since
from tests.intake.test_gaps_by_person import KEYS, MAILS, asked, lake, planned
from tests.waivers import MARKS


@dataclass(frozen=True)
class Looked:
    """A plan for the first three users, and the looks for them."""

    base: Path
    verification: Verification
    persons: tuple[str, ...]

    def write(self, place: str, *values: str, name: str = "a.parquet") -> None:
        (self.base / "w" / place).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": ["nobody", *values]}), self.base / "w" / place / name)

    def write_visits(self, *keys: int) -> None:
        """The table again, with these rows and no history."""
        shutil.rmtree(self.base / "w" / "visits")
        write_deltalake(self.base / "w" / "visits", pa.table({"user_id": list(keys), "note": ["-"] * len(keys)}))

    def left(self) -> PersonsLeft:
        elsewhere = self.verification.elsewhere()
        return ResidueOfPersons(self.verification).left(with_since(RunVerdict(copies=()), elsewhere), elsewhere)

    def place(self, name: str) -> str:
        return f"(new) {self.base / 'w' / name}"

    def visits(self) -> Copy:
        """The folder of a copy, to be looked at by its bytes alone."""
        copy = next(c for c in self.verification.plan.copies if c.table == "app.visits")
        return copy.model_copy(update={"match": None, "mentions": ()})

    def told_apart(self) -> CopyVerdict:
        copy = self.visits()
        return ResidueOfPersons(self.verification).told_apart(copy, self.verification.look(copy))


def no_spark() -> Any:
    raise AssertionError("no rows are read here")


def looked(base: Path, mails: Sequence[str] = MAILS) -> Looked:
    settings = lake(base, mails)
    asked(settings, 0, 1, 2)
    found, plan = planned(settings)
    assert found.marked
    assert found.written
    keys = KeyRing.open(manifest_path(found.written.path), plan.subjects_digest, settings.key()).key_sets
    looks = Verification(plan, settings.estate(), settings.base, keys, MARKS, no_spark, lambda: moment(None))
    subjects = {request.id: request.subject for request in plan.requests}
    return Looked(base, looks, tuple(subjects[f"R-{n}"] for n in range(3)))


def test_nothing_is_left_of_anybody(tmp_path: Path) -> None:
    assert looked(tmp_path).left() == NOBODY


@pytest.mark.parametrize("value", [MAILS[1], str(KEYS[1]), MAILS[1].upper()])
def test_a_place_that_has_one_person(tmp_path: Path, value: str) -> None:
    here = looked(tmp_path)
    here.write("found", value)
    assert here.left() == PersonsLeft(frozenset({here.persons[1]}), {here.persons[1]: (here.place("found"),)})


def test_places_that_have_several(tmp_path: Path) -> None:
    here = looked(tmp_path)
    here.write("found", MAILS[0])
    here.write("later", MAILS[0], MAILS[2])
    first, _, third = here.persons
    assert here.left().persons == {first, third}
    assert here.left().places == {first: (here.place("found"), here.place("later")), third: (here.place("later"),)}


def test_a_value_of_two_persons_is_of_both(tmp_path: Path) -> None:
    here = looked(tmp_path, [MAILS[0], MAILS[0], *MAILS[2:]])
    here.write("found", MAILS[0])
    assert here.left().persons == set(here.persons[:2])


def test_a_name_with_a_value_is_found_again(tmp_path: Path) -> None:
    """Names of places are masked by all values of the plan, whosever are looked for."""
    here = looked(tmp_path)
    here.write(f"of {MAILS[1]}", MAILS[1], name=f"{KEYS[1]}.parquet")
    left = here.left()
    assert left == PersonsLeft(frozenset({here.persons[1]}), {here.persons[1]: (here.place("of [user.mail]"),)})


def test_a_table_and_a_topic_of_one_name_are_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = looked(tmp_path)
    here.write("events", MAILS[0])
    pq.write_table(pa.table({"x": [MAILS[1]]}), (tmp_path / "topic.parquet"))
    local = DatasetId(namespace="file", name=str(tmp_path / "w" / "events"))
    topic = DatasetId(namespace="kafka://b:9092", name="app.events")
    examined = tuple(
        Examined(dataset=dataset, table=table, carries=Carries.NONE, reason="r")
        for dataset, table in ((local, "app.events"), (topic, None))
    )
    here.verification.plan = here.verification.plan.model_copy(update={"examined": examined})

    def records(looks: Verification, dataset: DatasetId) -> ByteVerdict | None:
        found = scan_tree(tmp_path / "topic.parquet", looks.patterns).files
        return look_past("(no copy) app.events", "kafka://b:9092/app.events", found) if dataset == topic else None

    monkeypatch.setattr(non_copies, "_topic_of", records)
    assert here.left().persons == set(here.persons[:2])
    elsewhere, looks = Verification.elsewhere, []

    def watched(self: Verification, only: Collection[str] | None = None) -> tuple[ByteVerdict, ...]:
        looks.append(self)
        return elsewhere(self, only)[: 1 if len(looks) == 3 else None]

    monkeypatch.setattr(Verification, "elsewhere", watched)
    assert here.left() == PersonsLeft(frozenset(here.persons))


def test_residue_beside_what_nobody_can_read_counts_for_all(tmp_path: Path) -> None:
    here = looked(tmp_path)
    here.write("found", MAILS[1])
    assert here.left().persons == {here.persons[1]}
    data = (tmp_path / "w" / "found" / "a.parquet").read_bytes()
    (tmp_path / "w" / "found" / "b.parquet").write_bytes(data[: len(data) // 2])
    assert here.left() == PersonsLeft(frozenset(here.persons))


def test_of_a_copy_only_who_is_named_is_left(tmp_path: Path) -> None:
    here = looked(tmp_path)
    here.write_visits(KEYS[1], KEYS[4])
    seen = here.told_apart()
    assert (seen.left_of, seen.erased, seen.erased_of_others) == ((here.persons[1],), False, True)
    assert {(item.copy_id, item.person) for item in seen.residue} == {("c-app.visits", None)}


def test_a_copy_with_all_of_them_is_of_nobody_in_particular(tmp_path: Path) -> None:
    seen = looked(tmp_path).told_apart()
    assert (seen.left_of, seen.erased_of_others, bool(seen.residue)) == ((), False, True)


@pytest.mark.parametrize("late", [0, 3])
def test_a_place_that_changes_between_the_looks_counts_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """late: who is written while the looks go on, one of the plan or somebody else."""
    here, look, looks = looked(tmp_path), Verification.look, []
    here.write_visits(KEYS[1], KEYS[4])

    def watched(self: Verification, copy: Copy) -> CopyVerdict:
        looks.append(self)
        if len(looks) == 3:
            pq.write_table(
                pa.table({"user_id": [KEYS[late]], "note": ["-"]}), tmp_path / "w" / "visits" / "late.parquet"
            )
        return look(self, copy)

    monkeypatch.setattr(Verification, "look", watched)
    seen = here.told_apart()
    assert (seen.left_of, len(looks)) == ((), 3)


def test_a_past_state_that_only_the_last_look_cannot_read_clears_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, look, looks = looked(tmp_path), Verification.look, []
    here.write_visits(KEYS[1], KEYS[4])

    def watched(self: Verification, copy: Copy) -> CopyVerdict:
        looks.append(self)
        past = StateRows(state="version 0", rows=None if len(looks) == 3 else 1)
        return look(self, copy).model_copy(update={"rows": RowVerdict(copy_id=copy.id, states=(past,))})

    monkeypatch.setattr(Verification, "look", watched)
    assert (here.told_apart().left_of, len(looks)) == ((), 3)


def test_a_note_is_compared_with_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between the note and the verdict file; then the owner removes what was left."""
    here = looked(tmp_path)
    copy = here.visits()
    step = next(s for s in here.verification.plan.steps if s.copy_ == copy.id and s.action is Action.VERIFY_COPY)
    journal = Journal.open(tmp_path / "journal.jsonl", lambda: moment(None))

    def note(name: str, facts: Mapping[str, Any]) -> None:
        journal.append(Kind.STEP_NOTED, step=name, facts=dict(facts))

    def executor() -> VerifyExecutor:
        return VerifyExecutor(here.verification, tmp_path, note, lambda name: left_of_step(journal.records, name))

    here.write_visits(KEYS[1], KEYS[4])
    with monkeypatch.context() as killed:
        killed.setattr(verify_step, "write_atomic", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            executor().run(step, copy)
    assert left_in(journal.records) == {here.persons[1]}
    here.write_visits(KEYS[4])
    executor().run(step, copy)
    assert executor().verify(step, copy).ok
    assert left_in(journal.records) == set()


def test_whom_the_search_for_each_alone_misses_the_second_look_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, judged = looked(tmp_path), byte_search.person_in
    first = here.persons[0]

    def blind(name: str) -> str | None:
        return None if judged(name) == first else judged(name)

    monkeypatch.setattr(byte_search, "person_in", blind)
    here.write_visits(KEYS[0], KEYS[1])
    assert here.told_apart().left_of == ()
    here.write("found", MAILS[0], MAILS[1])
    assert here.left() == PersonsLeft(frozenset(here.persons))


def test_a_longer_key_of_another_is_nobody_of_them(tmp_path: Path) -> None:
    """In a column that is compared as a whole, and where the owner says that numbers are another system's."""
    strong = KeySet(name="u.id", origin="o", weak=False, values=(("subj_a", "P-55102"), ("subj_b", "P-77201")))
    weak = KeySet(name="u.no", origin="o", weak=True, values=(("subj_a", "4711"), ("subj_b", "4712")))
    whole = build_patterns((strong, weak))
    apart = PartOfPatterns(each_person((strong, weak)), whole)
    place = apart.leaving_out({"driver": ["u.no"]}).comparing(KeyColumns({"k": ["u.id"]}))

    def named(text: str) -> set[str | None]:
        return {person_in(hit.key_set) for hit in scan_bytes("a.csv", text.encode(), place).hits}

    assert named("k,driver\nxP-55102,4711\n") == set()
    assert named("k,driver\nP-55102,1\n") == {"subj_a"}
    assert named("k,number\n-,4712\n") == {"subj_b"}
    assert apart.mask("P-55102 and P-77201") == "[u.id] and [u.id]"
