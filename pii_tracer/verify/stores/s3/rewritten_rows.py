"""Everybody else's rows in the objects of S3 that a plan rewrites, before the run and after it.

Read are the objects in which the byte search finds the persons, and no others. Whose a row is comes from the scan, as
in `object_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from pii_tracer.lake.stores.s3.version_readability import Download, Evidence, VersionBytes
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import EstateError, ScanError
from pii_tracer.model.hive_text.layout import text_at, text_of
from pii_tracer.model.locations import front_of
from pii_tracer.model.plan import Copy, Step
from pii_tracer.model.waivers import MarkKey
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.object_rows import Rows, counted, state_of
from pii_tracer.verify.verdicts import Baseline, StateBaseline

Place = tuple[str, str]
"""Key and version id of an object."""
_NULL = "null"
"""The version id in a bucket without versions."""


def rewritten(steps: Iterable[Step], copy: Copy) -> dict[Place, str | None]:
    """The versions of which the steps of a copy may write new ones, with the mark of their ETag."""
    return {
        (item["key"], item["version_id"]): item.get("etag")
        for step in steps
        if step.copy_ == copy.id and step.action is Action.S3_REWRITE_ARCHIVE
        for item in step.parameters["objects"]
    }


@dataclass(frozen=True)
class _Counted:
    """What was read of a version. digest: SHA-256 of its bytes; rows: None where they cannot be read."""

    digest: str
    rows: Rows | None


@dataclass
class RewrittenRows:
    """Counts rows of one copy. planned: as `rewritten`; written: SHA-256 (hex) of the objects that this run wrote.

    latest: by key, the version that a listing shows as the current one, of keys that this run wrote.
    """

    copy: Copy
    planned: Mapping[Place, str | None]
    patterns: Patterns
    marks: MarkKey
    written: Callable[[], Mapping[Place, str]]
    latest: dict[str, VersionBytes] = field(default_factory=dict)
    _read: dict[tuple[str, str, str], _Counted] = field(default_factory=dict)

    def before(self, holding: Iterable[VersionBytes]) -> Baseline | None:
        """The rows of the planned versions in which the search finds the persons.

        What is archived, cannot be read or is another by now is left out; if the run writes it, `after` tells nothing.
        None where nothing is left.
        """
        states = []
        for version in holding:
            if self._is_planned(version) and (rows := self._counted(version).rows) is not None:
                states.append(self._state(version.key, rows))
        return Baseline(copy_id=self.copy.id, states=tuple(states)) if states else None

    def noticed(self, versions: Iterable[VersionBytes]) -> Iterator[VersionBytes]:
        """The same versions; the rows of those that this run wrote are counted when they are read."""
        self.latest.clear()
        written = self._written()
        for version in versions:
            if not version.latest or version.key not in written:
                yield version
                continue
            self.latest[version.key] = version
            mine = version.version_id in written[version.key] and version.evidence is Evidence.BYTES
            yield replace(version, _read=partial(self._download, version)) if mine else version

    def after(self, before: Baseline) -> Baseline | None:
        """The rows of the objects that this run wrote, after `noticed`, beside those of before that it left alone.

        A version that is gone, in a bucket with versions and without a marker, has no rows: nobody but a step, or who
        deletes by version, takes it away. None where an object cannot be compared: its owner deleted it or wrote it
        again, it is archived, or its rows were not counted before.

        Raises:
            ScanError, EstateError: rows of an object that this run wrote cannot be read.
        """
        known = {state.state: state for state in before.states}
        for key, digests in self._written().items():
            mark, version = self._mark(key), self.latest.get(key)
            if version is not None and self._is_planned(version):
                continue  # what was written has this key in another bucket
            if mark not in known:
                return None
            if version is None and _NULL not in digests:
                known[mark] = self._state(key, Rows(0, 0, 0))
                continue
            if version is None or version.evidence is not Evidence.BYTES or version.version_id not in digests:
                return None
            found = self._counted(version)
            if found.digest != digests[version.version_id]:
                return None
            if found.rows is None:
                raise ScanError(
                    "the rows of an object that this run wrote cannot be read",
                    where=self.copy.location,
                    todo="look at the object, and make a new plan",
                )
            known[mark] = self._state(key, found.rows)
        return Baseline(copy_id=self.copy.id, states=tuple(known.values()))

    def _written(self) -> dict[str, dict[str, str]]:
        """What this run wrote under keys of the copy: by key, the version ids with SHA-256."""
        keys = {key for key, _ in self.planned}
        found: dict[str, dict[str, str]] = {}
        for (key, version_id), digest in self.written().items():
            if key in keys:
                found.setdefault(key, {})[version_id] = digest
        return found

    def _is_planned(self, version: VersionBytes) -> bool:
        mark = self.planned.get((version.key, version.version_id), "")
        return version.evidence is Evidence.BYTES and mark in (None, self.marks.of_content(version.key, _etag(version)))

    def _download(self, version: VersionBytes) -> Download:
        read = version.read()
        self._take(version, read[0])
        return read

    def _counted(self, version: VersionBytes) -> _Counted:
        known = self._read.get((version.key, version.version_id, _etag(version)))
        try:
            return self._take(version, version.read()[0]) if known is None else known
        except EstateError:
            return _Counted("", None)

    def _take(self, version: VersionBytes, data: bytes) -> _Counted:
        table, rows = text_of(self.copy.facts), Rows(0, 0, 0)
        text = text_at(table, front_of(self.copy.location), version.key) if table else None
        try:
            if table is None or text is not None:  # other files have no rows of the table
                rows = counted(self.copy, version.key, data, self.patterns, text)
            found = _Counted(sha256(data).hexdigest(), rows)
        except ScanError:
            found = _Counted(sha256(data).hexdigest(), None)
        self._read[version.key, version.version_id, _etag(version)] = found
        return found

    def _state(self, key: str, rows: Rows) -> StateBaseline:
        """Of an object. Nobody without the estate's key can check a guess of its name, or of a row."""
        state = state_of(self._mark(key), [rows])
        return state.model_copy(update={"checksum": self.marks.of_content(key, state.checksum)})

    def _mark(self, key: str) -> str:
        return self.marks.of_content(key, "rows")[:32]


def _etag(version: VersionBytes) -> str:
    return str(version.answer.get("ETag", "")).strip('"')
