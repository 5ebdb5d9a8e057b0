"""The journal: what is written stands, what was torn is cut, what was changed is refused."""

from __future__ import annotations

import errno
import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import JournalError
from pii_tracer.run.journal import GENESIS, GrowingJournal, Journal, Kind, parse
from pii_tracer.run.journal_truncation import end_file
from tests.review.plans import NOW


def clock() -> datetime:
    return NOW


def written(path: Path, count: int = 3) -> bytes:
    journal = Journal.open(path, clock)
    for number in range(count):
        journal.append(Kind.STEP_INTENT, step=f"s{number}", snapshot=2**62 + number)
    return path.read_bytes()


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "j"
    assert Journal.open(path, clock).head == GENESIS
    written(path)
    again = Journal.open(path, clock)
    assert [r.facts["step"] for r in again.records] == ["s0", "s1", "s2"]
    assert again.records[0].facts["snapshot"] == str(2**62)  # no double could hold it
    assert again.records[0].time == NOW
    assert again.head == again.records[-1].hash
    again.append(Kind.RUN_FINISHED, state="complete")
    assert len(Journal.open(path, clock).records) == 4
    assert path.stat().st_mode & 0o077 == 0


def test_a_torn_last_line_is_cut_and_noted_wherever_it_tore(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole")
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start + 1, len(whole)):
        path = tmp_path / f"torn{end}"
        written(path, 2)
        assert whole[:start] == path.read_bytes()
        path.write_bytes(whole[:end])
        journal = Journal.open(path, clock)
        assert [r.kind for r in journal.records] == [Kind.STEP_INTENT, Kind.STEP_INTENT, Kind.TORN_LINE_CUT]
        assert journal.records[-1].facts["bytes"] == end - start
        assert Journal.open(path, clock).head == journal.head


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_refused_and_the_record_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("j") / "j"
    whole = bytearray(written(path))
    last = whole[:-1].rindex(b"\n") + 1
    place = data.draw(st.integers(0, last - 1))
    whole[place] = data.draw(st.integers(0, 255).filter(lambda b: b != whole[place]))
    with pytest.raises(JournalError, match="broken") as caught:
        parse(bytes(whole))
    assert caught.value.where
    assert "record" in caught.value.where


@pytest.mark.parametrize("change", ["drop", "swap", "double", "empty"])
def test_lines_dropped_swapped_or_doubled_are_refused(tmp_path: Path, change: str) -> None:
    lines = written(tmp_path / "j").splitlines(keepends=True)
    changed = {
        "drop": [lines[0], lines[2]],
        "swap": [lines[1], lines[0], lines[2]],
        "double": [lines[0], lines[0], lines[1]],
        "empty": [lines[0], b"\n", lines[1]],
    }[change]
    (tmp_path / "j").write_bytes(b"".join(changed))
    with pytest.raises(JournalError, match="broken"):
        Journal.open(tmp_path / "j", clock)


def test_after_a_failed_write_nothing_more_is_written(tmp_path: Path) -> None:
    def full(fd: int, data: bytes) -> None:
        os.write(fd, data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "j"
    whole = written(path)
    journal = Journal.open(path, clock, write=full)
    with pytest.raises(JournalError, match="No space"):
        journal.append(Kind.STEP_INTENT, step="s3")
    with pytest.raises(JournalError, match="has failed"):
        journal.append(Kind.STEP_INTENT, step="s4")
    assert path.read_bytes() == whole + path.read_bytes()[-7:]
    assert len(Journal.open(path, clock).records) == 4  # three, and the note of the cut


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "j", clock)
    for wrong in (object(), float("nan"), "\ud800", datetime(2026, 1, 1)):
        with pytest.raises(JournalError):
            journal.append(Kind.STEP_INTENT, fact=wrong)
    assert (tmp_path / "j").read_bytes() == b""
    assert journal.append(Kind.STEP_INTENT, fact={"set": {2, 1}, "none": None, "t": (1.5, True)}).seq == 0


def test_canonical_is_rfc_8785() -> None:
    assert canonical({"b": 1, "a": "é\n"}) == '{"a":"é\\n","b":1}'.encode()


_NAMES = st.text(st.characters(exclude_categories=["Cs"]))
_WHOLE, _DOUBLES = st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-(2.0**53) + 1, 2.0**53 - 1) | st.just(float("inf"))
_SCALARS = st.none() | st.booleans() | _WHOLE | _DOUBLES | _NAMES


@settings(max_examples=400)
@given(st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner), max_leaves=12))
@example({"\U0001f600": 1, "\ufb33": 2})  # UTF-16 sorts these the other way round
@example({"control": '\x00\x1f\x7f\u2028"\\/'})
@example([1e15, 1e-7, -0.0, 5e-324, 2.0])
def test_canonical_says_what_the_library_for_rfc_8785_says(value: object) -> None:
    try:
        expected = rfc8785.dumps(value)  # type: ignore[arg-type]
    except rfc8785.CanonicalizationError:
        with pytest.raises(JournalError):
            canonical(value)
    else:
        assert canonical(value) == expected


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        _SCALARS | st.integers() | st.floats(),
        lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner),
        max_leaves=6,
    )
)
def test_a_record_that_was_appended_is_the_record_that_is_read(
    tmp_path_factory: pytest.TempPathFactory, fact: object
) -> None:
    path = tmp_path_factory.mktemp("j") / "j"
    journal = Journal.open(path, clock)
    try:
        journal.append(Kind.STEP_RESULT, fact=fact)
    except JournalError:  # not a number, or an infinite one
        assert path.read_bytes() == b""
    assert Journal.open(path, clock).records == journal.records


def test_two_writers_are_told_and_the_chain_of_the_first_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "j"
    first, second = Journal.open(path, clock), Journal.open(path, clock)
    first.append(Kind.STEP_INTENT, step="s0")
    with pytest.raises(JournalError, match="another process"):
        second.append(Kind.STEP_INTENT, step="s0")
    first.append(Kind.STEP_RESULT, step="s0")
    assert len(Journal.open(path, clock).records) == 2


def test_a_clock_that_was_set_back_stops_the_run_until_it_is_right_again(tmp_path: Path) -> None:
    path, times = tmp_path / "j", [NOW, NOW - timedelta(seconds=1), NOW - timedelta(days=1), NOW]
    journal = Journal.open(path, lambda: times.pop(0))
    journal.append(Kind.STEP_INTENT, step="s0")
    journal.append(Kind.STEP_RESULT, step="s0")  # a second back is a time server's doing
    before = path.read_bytes()
    with pytest.raises(JournalError, match="set back"):
        journal.append(Kind.STEP_VERIFIED, step="s0")
    assert path.read_bytes() == before
    journal.append(Kind.STEP_VERIFIED, step="s0")
    assert len(Journal.open(path, clock).records) == 3


def test_who_follows_a_journal_reads_each_record_once(tmp_path: Path) -> None:
    path = tmp_path / "j"
    growing = GrowingJournal(path)
    assert (growing.read(), growing.records) == ((), ())
    journal = Journal.open(path, clock)
    for number in range(3):
        record = journal.append(Kind.STEP_INTENT, step=f"s{number}")
        assert growing.read() == (record,), "and nothing of before"
        assert growing.read() == ()
    assert growing.records == journal.records
    with path.open("ab") as stream:
        stream.write(b'{"facts"')
    assert growing.read() == (), "its writer was never told that it stands"
    again = Journal.open(path, clock)
    again.append(Kind.STEP_INTENT, step="s4")
    assert [record.kind for record in growing.read()] == [Kind.TORN_LINE_CUT, Kind.STEP_INTENT]
    assert growing.records == again.records == Journal.open(path, clock).records


def test_who_follows_a_journal_notices_another_one_and_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal.open(path, clock)
    journal.append(Kind.STEP_INTENT, step="s0")
    journal.append(Kind.STEP_INTENT, step="s1")
    growing = GrowingJournal(path)
    growing.read()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])
    with pytest.raises(JournalError, match="missing"):
        growing.read()
    end = end_file(path)
    for gone in (path, end):
        gone.unlink()
    other = Journal.open(path, clock)
    other.append(Kind.STEP_INTENT, step="another")
    assert growing.read() == growing.records == other.records, "it is shorter, so that it is read anew"
    path.write_bytes(b"".join(lines) * 2)
    with pytest.raises(JournalError, match="broken"):
        growing.read()
