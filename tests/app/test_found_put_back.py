"""What `verify` found of a run counts, although somebody put back an older file, folder or journal of the run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.app.demo import _remove_old
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.persons_apart.later_findings import FoundSince, FoundThere
from pii_tracer.app.persons_apart.later_findings_file import FILE, FoundFile
from pii_tracer.app.persons_apart.requests_left_open import left_something
from pii_tracer.app.plan_verification import RunJournal, _keep
from pii_tracer.cli.main import run as run_command
from pii_tracer.model.errors import Refused
from pii_tracer.review.sealed_person_values import EstateKey
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.verify.verdicts import RunVerdict
from tests.app.test_later_findings import (
    EVERYBODY,
    clean_looks,
    file_of,
    found,
    found_by,
    heard_at,
    keep,
    keep_look,
    kept,
    mark,
    seen,
)
from tests.cli.test_close import OVER, begun, close
from tests.verify.test_computed_again import NOW

__all__ = ["begun"]


def refused(folder: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What is told by commands that say, of this run, that the person is erased, or do what cannot be undone then."""
    told = []
    for command in (
        ["attest", "certificate"],
        ["attest", "answer", folder.path.name, "--all", "--estate", str(tmp_path / "pii-tracer.yaml")],
        ["close", folder.path.name],
    ):
        capsys.readouterr()
        assert run_command([*command, "--state", str(tmp_path / "state")]) != 0, command
        told.append(capsys.readouterr().err)
        assert any(word in told[-1] for word in words), (command, told[-1])
    assert (tmp_path / "p.subjects.sealed").exists()
    return told


def late(folder: RunFolder) -> None:
    """`verify` finds the person in a copy."""
    keep(folder, found(folder, folder.approved().plan.copies[0].id))


@pytest.mark.parametrize("how", ["an old one", "an old one with its number", "the number gone", "the number cut"])
def test_an_old_file_that_was_put_back_is_noticed(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """Its seal holds, and it tells of nothing: it is from before the look that found the person."""
    kept(begun)
    file, number = begun.path / FILE, file_of(begun).newest_file
    old = file.read_bytes()
    late(begun)
    if how.startswith("an old"):
        file.write_bytes(old)
    if how == "an old one with its number":
        number.write_text(number.read_text().replace('"number": 2', '"number": 1'))
    if how == "the number gone":
        number.unlink()
    if how == "the number cut":
        number.write_text(number.read_text()[:20])
    words = {"an old one": "a newer file", "the number gone": "is gone", "the number cut": "cannot be read"}
    refused(begun, tmp_path, capsys, words.get(how, "was changed"))
    with pytest.raises(Refused):
        left_something(begun)


def test_who_looks_without_the_key_is_told_too(begun: RunFolder) -> None:
    kept(begun)
    old = (begun.path / FILE).read_bytes()
    late(begun)
    (begun.path / FILE).write_bytes(old)
    assert "newer file" in str(begun.result_known()[1])


def test_after_that_a_look_that_reads_everything_lets_anything_be_said(begun: RunFolder) -> None:
    """As the error says: the file is removed, and `verify` is run."""
    kept(begun)
    old = (begun.path / FILE).read_bytes()
    late(begun)
    (begun.path / FILE).write_bytes(old)
    began = NOW + timedelta(days=3650)
    told = _keep(begun.settings(), begun.approved(), began, lambda before: before)
    assert "newer file" in str(told), "it counts for nothing while it is there"
    (begun.path / FILE).unlink()
    keep_look(begun, RunVerdict(copies=clean_looks(begun)), began)
    assert begun.last_result() == {**OVER, "attestation": "a"}


def test_the_number_of_another_run_is_none_of_this_one(begun: RunFolder) -> None:
    kept(begun)
    number = file_of(begun).newest_file
    other = FoundFile(begun.path, (), "sha256:" + "b" * 64)
    own = (begun.path / FILE).read_bytes()
    other.keep(None, mark(begun))
    (begun.path / FILE).write_bytes(own)
    with pytest.raises(Refused, match="changed or replaced"):
        begun.found_since()
    number.write_text(file_of(begun).newest_file.read_text().replace("b" * 64, "c" * 64))
    with pytest.raises(Refused, match="changed or replaced"):
        begun.found_since(looking_only=True)


def test_a_kill_between_the_file_and_its_number_costs_nothing(begun: RunFolder) -> None:
    """The file is written first. The next one has a number of its own, so that the one of before is old then."""
    kept(begun)
    number = file_of(begun).newest_file
    before = number.read_bytes()
    late(begun)
    number.write_bytes(before)
    of_then = (begun.path / FILE).read_bytes()
    assert begun.found_since() is not None
    keep(begun, None)
    assert begun.found_since() is None
    (begun.path / FILE).write_bytes(of_then)
    with pytest.raises(Refused, match="newer file"):
        begun.found_since()


def test_a_run_of_an_earlier_version_has_a_number_from_the_first_look_on(begun: RunFolder) -> None:
    assert begun.found_since() is None
    keep(begun, FoundSince(at=NOW, plan_digest=begun.approved().digest))
    (begun.path / FILE).unlink()
    with pytest.raises(Refused, match="is gone"):
        begun.found_since()


def test_a_key_of_another_estate_makes_no_number(begun: RunFolder) -> None:
    kept(begun)
    own = (begun.path / FILE).read_bytes()
    file_of(begun).keep(None, EstateKey(bytes(64)).found_mark)
    (begun.path / FILE).write_bytes(own)
    with pytest.raises(Refused, match="was changed"):
        begun.found_since()


@pytest.mark.parametrize("how", ["the run's folder", "the state folder"])
def test_a_copy_of_before_gives_no_certificate(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """It knows nothing of what was found since."""
    kept(begun)
    source = begun.path if how == "the run's folder" else tmp_path / "state"
    shutil.copytree(source, tmp_path / "old")
    late(begun)
    source.rename(tmp_path / "away")
    shutil.copytree(tmp_path / "old", source)
    refused(begun, tmp_path, capsys, "put back", "a newer file")


@pytest.mark.parametrize("text", ["{", "{}"])
def test_a_run_whose_record_cannot_be_read_is_not_called_erased(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """Without it nobody knows which file of findings is the run's."""
    kept(begun)
    late(begun)
    begun.info_file.write_text(text)
    refused(begun, tmp_path, capsys, "not a run")
    with pytest.raises(Refused, match="cannot be read"):
        left_something(begun)


def test_what_is_found_counts_although_the_journal_is_gone(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its end is gone, too, so that nothing says that there was one: the evidence has the journal as it was attested."""
    kept(begun)
    begun.journal.unlink()
    begun.journal.with_name("journal.jsonl.end").unlink()
    loaded, began = begun.approved(), NOW + timedelta(days=3650)
    records = RunJournal(begun.settings(), loaded).records
    verdict, heard = seen(loaded.plan.copies[0].id), heard_at(loaded, records)
    _keep(
        begun.settings(),
        loaded,
        began,
        lambda before: found_by(loaded, records, verdict, EVERYBODY, before, began, began, heard),
    )
    assert [one["copy"] for one in (begun.last_result() or {})["residue"]] == [loaded.plan.copies[0].id]
    assert run_command(["attest", "certificate", "--state", str(tmp_path / "state")]) == 9


def test_the_journal_of_another_run_is_none_of_this_one(begun: RunFolder) -> None:
    kept(begun)
    own = RunJournal(begun.settings(), begun.approved()).records
    begun.journal.with_name("journal.jsonl.end").unlink()
    begun.journal.unlink()
    Journal.open(begun.journal).append(Kind.RUN_STARTED, plan_id="p", plan_digest="sha256:" + "b" * 64)
    assert RunJournal(begun.settings(), begun.approved()).records == own, "as it was attested"
    shutil.rmtree(begun.evidence)
    assert RunJournal(begun.settings(), begun.approved()).records == ()


def test_two_looks_at_once_lose_nothing_of_each_other(begun: RunFolder) -> None:
    kept(begun)
    copies = begun.approved().plan.copies[:2]
    seal = mark(begun)

    def look(place: str) -> None:
        there = FoundThere(at=NOW, residue=({"copy": place},), persons=("l",))

        def with_it(before: FoundSince | None) -> FoundSince:
            time.sleep(0.05)
            of = before or FoundSince(at=NOW, plan_digest=begun.approved().digest)
            return of.model_copy(update={"places": {**of.places, place: there}})

        file_of(begun).change(with_it, seal)

    with ThreadPoolExecutor(2) as both:
        list(both.map(look, [copy.id for copy in copies]))
    found_there = begun.found_since()
    assert found_there is not None
    assert (found_there.places.keys(), found_there.number) == ({copy.id for copy in copies}, 3)


def certified(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> str:
    """What stops the certificate of a closed run; nothing where it is given."""
    capsys.readouterr()
    code = run_command(["attest", "certificate", "--state", str(folder.state)])
    return capsys.readouterr().err if code else ""


def test_a_closed_run_knows_its_number_itself(begun: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody can look for its persons again, so that a lost number would be refused for ever."""
    kept(begun)
    assert close(begun) == 0
    told = json.loads(begun.closed.read_bytes())
    assert (told["found"]["number"], told["found"]["plan_digest"]) == (1, begun.approved().digest)
    file_of(begun).newest_file.unlink()
    assert certified(begun, capsys) == ""
    assert close(begun) == 0
    assert not file_of(begun).is_lost


def test_an_old_number_beside_a_closed_run_does_not_count(begun: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody puts an old file and its number back. The run itself knows a newer one."""
    kept(begun)
    number = file_of(begun).newest_file
    old = (begun.path / FILE).read_bytes(), number.read_bytes()
    keep(begun, None)
    assert close(begun) == 0
    (begun.path / FILE).write_bytes(old[0])
    number.write_bytes(old[1])
    assert "a newer file" in certified(begun, capsys)


@pytest.mark.parametrize("how", ["an old file", "edited", "of before it was closed", "another plan's"])
def test_what_a_closed_run_knows_is_sealed_and_counts(
    begun: RunFolder, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    kept(begun)
    old, number = (begun.path / FILE).read_bytes(), file_of(begun).newest_file.read_bytes()
    keep(begun, None)
    assert close(begun) == 0
    file_of(begun).newest_file.unlink()
    closed = json.loads(begun.closed.read_bytes())
    if how != "another plan's":
        (begun.path / FILE).write_bytes(old)
    if how == "edited":
        closed["found"]["number"] = 1
    if how == "of before it was closed":
        closed["found"] = json.loads(number)
    if how == "another plan's":
        closed["found"]["plan_digest"] = "sha256:" + "b" * 64
    begun.closed.write_text(json.dumps(closed))
    told = certified(begun, capsys)
    assert ("a newer file" if how == "an old file" else "changed or replaced") in told
    assert f"where: {begun.path / (FILE if how == 'an old file' else 'closed.json')}" in told


@pytest.mark.parametrize("lost", ["found.json", "the number", "the number cut"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_the_file_that_is_missing_is_named_and_a_whole_one_is_never_given_away(
    begun: RunFolder, capsys: pytest.CaptureFixture[str], lost: str, is_closed: bool
) -> None:
    """A run that an earlier version closed has no number of its own."""
    kept(begun)
    if is_closed:
        assert close(begun) == 0
        told = json.loads(begun.closed.read_bytes())
        begun.closed.write_text(json.dumps({name: told[name] for name in ("plan_id", "closed_at")}))
    number = file_of(begun).newest_file
    missing = begun.path / FILE if lost == "found.json" else number
    if lost == "the number cut":
        missing.write_text("{")
    else:
        missing.unlink()
    error = certified(begun, capsys)
    assert f"where: {missing}\n" in error
    assert "remove it" not in error
    assert ("move it out of its folder" in error) is (lost == "the number cut" and not is_closed)
    if is_closed:
        name = "found.json" if lost == "found.json" else f"found/{begun.path.name}.json"
        assert f"restore {name} from a backup" in error
        assert "put the file back" not in error


def test_what_a_kill_leaves_beside_the_numbers_is_swept(begun: RunFolder) -> None:
    kept(begun)
    folder = file_of(begun).newest_file.parent
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = folder / f".{begun.path.name}.json.{ended.pid}.tmp"
    left.write_text("{")
    os.utime(left, (0, 0))
    keep(begun, None)
    assert [path.name for path in folder.iterdir()] == [f"{begun.path.name}.json"]


def test_the_runs_of_an_old_demo_go_with_their_numbers(begun: RunFolder, tmp_path: Path) -> None:
    kept(begun)
    number = file_of(begun).newest_file
    begun.write_info(begun.info().model_copy(update={"demo": True}))
    _remove_old(tmp_path / "demo", begun.state)
    assert (begun.path.exists(), number.exists()) == (False, False)
