"""Everybody else's rows in the objects of S3 that a plan rewrites, before the run and after it.

Other objects of an archive are not read for this: no step writes them. Whose a row is comes from the scan, as in
`object_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from pii_tracer.lake.stores.s3.version_evidence import Download, Evidence, VersionBytes
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


def rewritten(steps: Iterable[Step], copy: Copy) -> dict[Place, str | None]:
    """The versions of which the steps of a copy write new ones, with the mark of their ETag."""
    return {
        (item["key"], item["version_id"]): item.get("etag")
        for step in steps
        if step.copy_ == copy.id and step.action is Action.S3_REWRITE_ARCHIVE
        for item in step.parameters["objects"]
    }


@dataclass
class RewrittenRows:
    """Counts rows of one copy. planned: as `rewritten`; written: SHA-256 (hex) of the objects that this run wrote.

    latest: by key, the version that a listing shows as the current one.
    """

    copy: Copy
    planned: Mapping[Place, str | None]
    patterns: Patterns
    marks: MarkKey
    written: Callable[[], Mapping[Place, str]]
    latest: dict[str, VersionBytes] = field(default_factory=dict)
    _counted: dict[tuple[str, str, str], tuple[str, Rows]] = field(default_factory=dict)

    def before(self, versions: Iterable[VersionBytes]) -> Baseline | None:
        """The rows of the planned versions; None where one of them is archived, cannot be read, or is another."""
        found = list(versions)
        same = {(version.key, version.version_id) for version in found if self._is_planned(version)}
        if not found or same != self.planned.keys():
            return None
        try:
            states = tuple(self._state(version.key, self._rows(version)[1]) for version in found)
        except (EstateError, ScanError):
            return None
        return Baseline(copy_id=self.copy.id, states=states)

    def noticed(self, versions: Iterable[VersionBytes]) -> Iterator[VersionBytes]:
        """The same versions, the rows of which are counted when they are read."""
        self.latest.clear()
        keys = {key for key, _ in self.planned}
        for version in versions:
            if not version.latest or version.key not in keys:
                yield version
                continue
            self.latest[version.key] = version
            ours = version.evidence is Evidence.BYTES and self._may_be_ours(version)
            yield replace(version, _read=partial(self._download, version)) if ours else version

    def after(self) -> Baseline | None:
        """The rows of the current versions, after `noticed`; an object that is gone has none.

        None where one of them cannot be compared: its owner deleted it or wrote it again, or it is archived.

        Raises:
            ScanError, EstateError: rows of an object that this run wrote cannot be read.
        """
        states = []
        for key, _ in self.planned:
            version = self.latest.get(key)
            if version is None:
                states.append(self._state(key, Rows(0, 0, 0)))
                continue
            if version.evidence is not Evidence.BYTES or not self._may_be_ours(version):
                return None
            digest, rows = self._rows(version)
            if digest != self.written().get((key, version.version_id), digest):
                return None
            states.append(self._state(key, rows))
        return Baseline(copy_id=self.copy.id, states=tuple(states))

    def _is_planned(self, version: VersionBytes) -> bool:
        mark = self.planned.get((version.key, version.version_id), "")
        return version.evidence is Evidence.BYTES and mark in (None, self.marks.of_content(version.key, _etag(version)))

    def _may_be_ours(self, version: VersionBytes) -> bool:
        return (version.key, version.version_id) in self.written() or self._is_planned(version)

    def _download(self, version: VersionBytes) -> Download:
        read = version.read()
        self._take(version, read[0])
        return read

    def _rows(self, version: VersionBytes) -> tuple[str, Rows]:
        known = self._counted.get((version.key, version.version_id, _etag(version)))
        return self._take(version, version.read()[0]) if known is None else known

    def _take(self, version: VersionBytes, data: bytes) -> tuple[str, Rows]:
        table, rows = text_of(self.copy.facts), Rows(0, 0, 0)
        text = text_at(table, front_of(self.copy.location), version.key) if table else None
        if table is None or text is not None:  # other files have no rows of the table
            rows = counted(self.copy, version.key, data, self.patterns, text)
        told = self._counted[version.key, version.version_id, _etag(version)] = sha256(data).hexdigest(), rows
        return told

    def _state(self, key: str, rows: Rows) -> StateBaseline:
        """Of an object, whose name can tell of a person."""
        return state_of(self.marks.of_content(key, "rows")[:32], [rows])


def _etag(version: VersionBytes) -> str:
    return str(version.answer.get("ETag", "")).strip('"')
