"""Lines of event and log files, plain or gzip. What breaks off or cannot be read is a gap with its file and line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from pii_tracer.common.atomic_files import all_below
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of a line beyond which it is not read: no event is that long, and memory is not endless."""

_ONE_BY_ONE = 20
"""Bad lines of a file that are told one by one; the rest of them are told as a number."""

_BOM = b"\xef\xbb\xbf"
_DECODER = msgspec.json.Decoder()


@dataclass
class Gaps:
    """Gaps of one file: the first ones by line, the others counted, so that a file of rubbish does not fill memory."""

    shown: str
    kind: LineageGapKind = LineageGapKind.UNREADABLE_EVENT
    found: list[LineageGap] = field(default_factory=list)
    _more: int = 0
    _last: int = 0

    def add(self, line: int, reason: str, closes: str = "get a complete copy of the file") -> None:
        """A line that cannot be used."""
        if len(self.found) < _ONE_BY_ONE:
            self.found.append(self._gap(line, reason, closes))
        else:
            self._more, self._last = self._more + 1, line

    def all(self) -> list[LineageGap]:
        """What to tell at the end of the file."""
        if not self._more:
            return self.found
        reason = f"{self._more} more lines are malformed, the last of them line {self._last}"
        return [*self.found, self._gap(self._last, reason, "get a complete copy of the file")]

    def _gap(self, line: int, reason: str, closes: str) -> LineageGap:
        return LineageGap(dataset=None, kind=self.kind, reason=reason, evidence=f"{self.shown}:{line}", closes=closes)


def files_of(place: Path) -> list[Path]:
    """A file, or all files of a folder that are not hidden, sorted.

    Raises:
        LineageError: a folder in it may not be listed.
    """
    if not place.is_dir():
        return [place]

    def refuse(error: OSError) -> None:
        raise LineageError(
            f"a folder of a lineage source cannot be listed: {error.strerror or type(error).__name__}",
            where=str(error.filename),
            todo="let this account read the folder, or list the files to read in `lineage` of the estate file",
        )

    found = (p for p in all_below(place, refuse) if p.is_file())
    return [p for p in found if not any(part.startswith(".") for part in p.relative_to(place).parts)]


def lines_of(file: Path, gaps: Gaps) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line that is not blank; where the file breaks off, what was read stays."""
    number = 0
    try:
        with _opened(file) as stream:
            while line := stream.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    gaps.add(number, f"the line is longer than {LONGEST_LINE} bytes", "split the line, or leave it out")
                    _skip(stream)
                    continue
                if number == 1:
                    line = line.removeprefix(_BOM)
                if stripped := line.strip():
                    yield number, stripped
    except (OSError, EOFError, zlib.error) as error:
        gaps.add(number + 1, f"the file ends too early ({type(error).__name__})")


def _opened(file: Path) -> BinaryIO:
    """By content, not by name: tools hand on gzip files under any name."""
    stream = file.open("rb")
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    if not packed:
        return stream
    stream.close()
    return cast(BinaryIO, gzip.open(file, "rb"))


def _skip(stream: BinaryIO) -> None:
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def objects_of(file: Path, gaps: Gaps) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file: one a line, or the file as one document (an object, or a list of them)."""
    first = True
    for number, line in lines_of(file, gaps):
        value = decoded(line)
        if value is None and first:
            whole = _document(file)
            if whole is not None:
                yield from _each(whole, gaps)
                return
        first = False
        if value is None:
            gaps.add(number, "the line is not JSON")
        elif isinstance(value, list):
            yield from ((number, item) for _, item in _each(value, gaps, number))
        elif isinstance(value, dict):
            yield number, value
        else:
            gaps.add(number, "the line is not an object")


def decoded(line: bytes) -> Any:
    """The JSON value of a line; None where it is none (the value `null` is no event either)."""
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _document(file: Path) -> list[Any] | None:
    """A file that is one document over several lines."""
    try:
        with _opened(file) as stream:
            text = stream.read(LONGEST_LINE + 1)
    except (OSError, EOFError, zlib.error):
        return None
    value = decoded(text.removeprefix(_BOM)) if len(text) <= LONGEST_LINE else None
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else None


def _each(values: list[Any], gaps: Gaps, line: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    for place, value in enumerate(values, 1):
        if isinstance(value, dict):
            yield place, value
        else:
            gaps.add(line, f"entry {place} is not an object")
