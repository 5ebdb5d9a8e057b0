"""What is downloaded from DROP: a ZIP of one CSV a list, and one of identifiers that were removed again."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.common.plurals import counted
from pii_tracer.intake.drop.identifier_normalization import LISTS, digest_told
from pii_tracer.model.errors import RequestError

REMOVED = "Removed"
_ID = re.compile(r"[A-Za-z0-9]{12}")
_NAMES = {name.lower(): name for name in (*LISTS, REMOVED)}
_MOST_LINE = 4096


@dataclass(frozen=True)
class WorkItem:
    """A line of a list. list: which one, or `Removed`. digest: of the identifier; none where it was removed.

    wrong: why the line cannot be read as one; it holds nothing of it.
    """

    file: str
    line: int
    list: str
    id: str = ""
    digest: bytes = b""
    wrong: str | None = None

    def __repr__(self) -> str:
        return f"WorkItem({self.file}, line {self.line})"


def lists_in(path: Path) -> dict[str, str]:
    """Which list each file of an archive is.

    Raises:
        RequestError: it is no ZIP, or a file in it is no list of DROP.
    """
    found: dict[str, str] = {}
    with _opened(path) as archive:
        for member in archive.namelist():
            parts = Path(member).stem.split("_")
            kinds = {_NAMES[part.lower()] for part in parts if part.lower() in _NAMES}
            if not member.lower().endswith(".csv") or len(kinds) != 1:
                raise RequestError(
                    "a file of the archive does not have the name of a DROP list",
                    where=f"{path}, file {len(found) + 1}",
                    todo=f"download it again; the name of each file holds one of {', '.join((*LISTS, REMOVED))}",
                )
            found[member] = kinds.pop()
    return found


def work_items(path: Path, lists: Sequence[str]) -> Iterator[WorkItem]:
    """The lines of some lists of an archive, in its order, as a stream. Raises as `lists_in`."""
    chosen = {member: kind for member, kind in lists_in(path).items() if kind in lists}
    with _opened(path) as archive:
        for member, kind in chosen.items():
            try:
                with archive.open(member) as raw:
                    yield from _lines(io.TextIOWrapper(raw, "utf-8-sig", errors="replace"), member, kind, str(path))
            except (zipfile.BadZipFile, RuntimeError, EOFError, NotImplementedError, OSError) as error:
                raise RequestError(
                    f"the archive is damaged, or it is encrypted: {type(error).__name__}",
                    where=str(path),
                    todo="download it again",
                ) from None


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else "it is no ZIP"
        raise RequestError(
            f"the archive cannot be read: {reason}",
            where=str(path),
            todo="name the ZIP file that you downloaded from DROP",
        ) from None


def _lines(stream: io.TextIOWrapper, member: str, kind: str, where: str) -> Iterator[WorkItem]:
    header = [name.strip() for name in _fields(stream.readline(_MOST_LINE))]
    if header[:2] != ["ID", "Hash"]:
        raise RequestError(
            "a list does not begin with the columns ID and Hash", where=f"{where}, {kind}", todo="download it again"
        )
    number = 1
    while line := stream.readline(_MOST_LINE):
        number += 1
        if not line.strip():
            continue
        fields = _fields(line)
        if len(fields) != len(header):
            yield WorkItem(
                member, number, kind, wrong=f"it has {counted(len(fields), 'field')}, and the header {len(header)}"
            )
        elif not _ID.fullmatch(fields[0]):
            yield WorkItem(member, number, kind, wrong="its ID is not twelve letters and digits")
        elif kind == REMOVED:
            yield WorkItem(member, number, kind, fields[0])
        elif (digest := digest_told(fields[1])) is None:
            yield WorkItem(member, number, kind, wrong="its hash is not SHA-256 in Base64")
        else:
            yield WorkItem(member, number, kind, fields[0], digest)


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])
