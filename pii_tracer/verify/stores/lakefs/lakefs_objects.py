"""Verification of lakeFS repositories: every object that can be had, through lakeFS and past it, decoded and searched.

Whose a row is comes from the scan here (any of the person's values in it), not from the executor's comparison.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
import zstandard

from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.verdicts import (
    Baseline,
    ByteVerdict,
    RowVerdict,
    StateBaseline,
    StateRows,
)

_MODULUS = 1 << 256


@dataclass(frozen=True)
class Shown:
    """An object that was read. path: as lakeFS shows it, None where only the storage does.

    declared: it holds rows of the table. data: its bytes, where it is declared. stray: nothing in lakeFS names it.
    """

    address: str
    path: str | None
    scan: FileScan
    declared: bool
    data: bytes | None = None
    stray: bool = False


@dataclass(frozen=True)
class LakefsLook:
    """What one reading of a repository showed."""

    bytes: ByteVerdict
    rows: RowVerdict
    baseline: Baseline


@dataclass(frozen=True)
class _Rows:
    """Rows of one object. sum: of a hash of each row that is not the persons'."""

    persons: int
    others: int
    sum: int


def judge_repository(
    copy: Copy, state: LakefsState, shown: Iterable[Shown], patterns: Patterns, plan_id: str
) -> LakefsLook:
    """Search a repository; count the persons' rows at each branch's head, and sum up everybody else's where the plan
    rewrites: in the plan's own commit, or at the head as long as it has made none. What others commit later is theirs.

    Short numbers count only in objects that are declared to hold rows of the table: elsewhere they mean nothing.

    Raises:
        ScanError: an object that a branch's head names is gone, or its rows cannot be read.
    """
    heads = {b.name: _declared(state, b.head) for b in state.branches}
    touched = [b for b in state.branches if b.name in copy.facts.get("branches", ())]
    written = {b.name: _declared(state, state.written(b, plan_id)) for b in touched}
    wanted = {address for addresses in (*heads.values(), *written.values()) for address in addresses}
    rows: dict[str, _Rows] = {}
    files = []
    for item in shown:
        scan = item.scan
        files.append(scan if item.declared else scan.model_copy(update={"hits": scan.strong}))
        if item.address in wanted and item.data is not None:
            rows[item.address] = _counted(copy, item.data, patterns)
    missing = wanted - rows.keys()
    if missing:
        raise ScanError(
            f"{len(missing)} object(s) that the head of a branch names, or the plan wrote, cannot be read",
            where=copy.location,
            todo="look at the repository: has a collection removed too much?",
        )
    verdict = judge(copy, copy.location, tuple(files), frozenset(copy.other_keys))
    unverified = (*verdict.unverified, *_not_seen(state))
    verdict = verdict.model_copy(update={"unverified": unverified, "compared": patterns.key_columns.labels})
    counted = tuple(
        StateRows(state=f"branch {name}", rows=sum(rows[a].persons for a in found)) for name, found in heads.items()
    )
    states = tuple(_state(f"branch {name}", [rows[a] for a in found]) for name, found in written.items())
    baseline = Baseline(copy_id=copy.id, states=states)
    return LakefsLook(verdict, RowVerdict(copy_id=copy.id, states=counted), baseline)


def _declared(state: LakefsState, commit: str) -> list[str]:
    return [address for path, address in state.tree_of(commit).items() if state.declares(path)]


def _state(name: str, parts: list[_Rows]) -> StateBaseline:
    persons, others = sum(r.persons for r in parts), sum(r.others for r in parts)
    checksum = f"{sum(r.sum for r in parts) % _MODULUS:064x}"
    return StateBaseline(state=name, rows_total=persons + others, rows_person=persons, checksum=checksum)


def _not_seen(state: LakefsState) -> list[str]:
    if state.stray is not None:
        return []
    return [
        f"{state.storage}: the storage below the repository cannot be listed from here, so that what no known commit"
        " names, and old versions of objects, were not looked at"
    ]


def _counted(copy: Copy, data: bytes, patterns: Patterns) -> _Rows:
    persons = others = total = 0
    try:
        for row in _rows(copy.format, data):
            if _is_persons(copy, row, patterns):
                persons += 1
            else:
                others += 1
                told = json.dumps(row, sort_keys=True, default=str).encode()
                total += int.from_bytes(hashlib.sha256(told).digest(), "big")
    except Exception as error:  # the libraries' messages can quote what they could not read
        raise ScanError(
            f"the rows of an object cannot be read: {type(error).__name__}",
            where=copy.location,
            todo="is the format that the estate file declares the right one?",
        ) from None
    return _Rows(persons, others, total)


def _rows(kind: Format, data: bytes) -> Iterator[Mapping[str, Any]]:
    if kind is Format.PARQUET:
        file = pq.ParquetFile(io.BytesIO(data))
        for batch in file.iter_batches():
            yield from batch.to_pylist()
        return
    text = io.StringIO(_unpacked(data).decode("utf-8", "surrogateescape"), newline="")
    yield from csv.DictReader(text, strict=True, restkey="(more)")


def _unpacked(data: bytes) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            return bytes(stream.read())
    return data


def _is_persons(copy: Copy, row: Mapping[str, Any], patterns: Patterns) -> bool:
    found = Collector(patterns)
    for column, value in row.items():
        found.cell(value, "data", column)
    one = FileScan(path="", size=0, sha256="", decoded_as="", hits=found.hits())
    return bool(judge(copy, "", (one,), frozenset(copy.other_keys)).residue)
