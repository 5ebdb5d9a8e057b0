"""A tail that was cut off leaves a whole chain; the file beside the journal knows where it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.model.errors import JournalError
from pii_tracer.run.journal import Journal, Kind, read_journal
from pii_tracer.run.journal_truncation import End, end_file, read_end, refuse_lost, write_end
from tests.run.test_journal import clock, written


@pytest.mark.parametrize("left", range(1, 6))
def test_a_tail_that_was_cut_off_is_refused_and_the_missing_record_named(tmp_path: Path, left: int) -> None:
    path = tmp_path / "j"
    lines = written(path, 6).splitlines(keepends=True)
    last = Journal.open(path, clock).head
    path.write_bytes(b"".join(lines[:left]))
    for look in (read_journal, lambda there: Journal.open(there, clock)):
        with pytest.raises(JournalError, match=f"stops behind record {left - 1}, and record 5") as caught:
            look(path)
        assert last in caught.value.what
    assert path.read_bytes() == b"".join(lines[:left])


def test_a_torn_line_before_the_end_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(cut := written(path)[:-9])
    with pytest.raises(JournalError, match="stops behind record 1, and record 2"):
        Journal.open(path, clock)
    assert path.read_bytes() == cut


@pytest.mark.parametrize(("gone", "word"), [(True, "missing"), (False, "empty")])
def test_a_journal_that_is_gone_or_empty_is_no_fresh_run(tmp_path: Path, gone: bool, word: str) -> None:
    path = tmp_path / "j"
    written(path)
    path.unlink() if gone else path.write_bytes(b"")
    with pytest.raises(JournalError, match=f"journal of a run that began is {word}: 3 record"):
        Journal.open(path, clock)
    assert path.exists() is not gone


def test_records_that_were_written_anew_behind_a_cut_are_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "j", tmp_path / "other"
    written(path)
    journal = Journal.open(other, clock)
    for number in range(4):
        journal.append(Kind.STEP_INTENT, step=f"t{number}")
    path.write_bytes(other.read_bytes())
    with pytest.raises(JournalError, match="record 2 of the journal is not the one that was written"):
        Journal.open(path, clock)


@pytest.mark.parametrize(
    "data", [None, b"", b"{}", b"[]", b'{"records": "3", "head": ""}', b'{"records": -1}', b"\xff"]
)
def test_without_its_end_file_nobody_can_tell(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "j"
    written(path)
    end_file(path).unlink() if data is None else end_file(path).write_bytes(data)
    with pytest.raises(JournalError, match=r"the end of the journal|where the journal ends"):
        Journal.open(path, clock)


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_killed_between_a_record_and_the_end_file_it_goes_on(tmp_path: Path, behind: int) -> None:
    path = tmp_path / "j"
    written(path, behind)
    kept = end_file(path).read_bytes()
    written(path, 1)
    end_file(path).write_bytes(kept)
    journal = Journal.open(path, clock)
    assert len(journal.records) == behind + 1
    path.write_bytes(b"")
    with pytest.raises(JournalError, match="began is empty"):
        Journal.open(path, clock)


def test_killed_between_the_end_file_and_the_first_byte_of_the_journal_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal.open(path, clock)
    path.unlink()
    assert Journal.open(path, clock).append(Kind.STEP_INTENT, step="s").seq == 0


def test_an_end_that_cannot_be_kept_stops_the_run(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal.open(path, clock)
    end_file(path).unlink()
    end_file(path).mkdir()
    with pytest.raises(JournalError, match="cannot be used"):
        journal.append(Kind.STEP_INTENT, step="s")
    with pytest.raises(JournalError, match="has failed"):
        journal.append(Kind.STEP_INTENT, step="t")
    end_file(path).rmdir()


def test_the_end_is_kept_beside_the_journal_for_its_owner_alone_and_in_one_form(tmp_path: Path) -> None:
    """Evidence of earlier runs has the file under this name and in this form."""
    path = tmp_path / "journal.jsonl"
    write_end(path, End(2, "sha256:a"))
    kept = tmp_path / "journal.jsonl.end"
    assert kept.read_bytes() == b'{"head": "sha256:a", "records": 2}\n'
    assert kept.stat().st_mode & 0o777 == 0o600
    assert read_end(path) == End(2, "sha256:a")


@pytest.mark.parametrize(
    "data",
    [b'{"records": "3", "head": "a"}', b'{"records": true, "head": "a"}', b'{"records": 1, "head": 2}'],
)
def test_an_end_of_another_kind_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "j"
    end_file(path).write_bytes(data)
    with pytest.raises(JournalError, match="cannot be read") as caught:
        read_end(path)
    assert caught.value.where == str(end_file(path))


def test_what_lacks_records_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path)
    records, _ = read_journal(path)
    refuse_lost(path, End(3, records[-1].hash), records)
    refuse_lost(path, End(0, ""), records)
    refuse_lost(path, End(0, ""), None)
    refuse_lost(path, None, None)
    refuse_lost(path, None, ())
    for end, there in ((None, records), (End(3, "x"), records), (End(4, "x"), records), (End(1, "x"), None)):
        with pytest.raises(JournalError) as caught:
            refuse_lost(path, end, there)
        assert caught.value.where == str(end_file(path) if end is None else path)
