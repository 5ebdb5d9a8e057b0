"""How a run looks at its copies' places (`proof.storage_change_witness`): folders, versions in buckets, topics."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pii_tracer.app.other_people_counts import OBJECTS
from pii_tracer.app.vault_verification import in_vault
from pii_tracer.app.verification import Verification
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import CopyKind
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.proof.evidence_leaves import ScopeFile, lines_digest, scope_lines
from pii_tracer.proof.storage_change_witness import (
    BY_VERSION,
    FileBefore,
    Seen,
    Witness,
    before_place,
    log_of,
    manifest_of,
    read_before,
)
from pii_tracer.run.executor_protocol import Executor
from pii_tracer.scan.folder_content_hashes import fingerprint
from pii_tracer.scan.folder_scan import walk_files


def watched(executors: Mapping[str, Executor], verification: Verification, folder: Path) -> dict[str, Executor]:
    """The executors, each watched while it works."""
    places = _Places(verification, folder)
    owner = _owners(verification.plan)
    return {
        name: Witness(inner, folder, places.look, places.hashed, lambda copy: owner.get(copy.id))
        for name, inner in executors.items()
    }


def _owners(plan: ErasurePlan) -> dict[str, Copy]:
    """A branch or tag lies in its table's folder."""
    by_location = {c.location: c for c in plan.copies if c.kind is not CopyKind.TABLE_HISTORY}
    return {
        c.id: by_location[c.location] if c.kind is CopyKind.TABLE_HISTORY else c
        for c in plan.copies
        if c.kind is not CopyKind.TABLE_HISTORY or c.location in by_location
    }


class _Places:
    def __init__(self, verification: Verification, folder: Path) -> None:
        self._verification = verification
        self._folder = folder

    def look(self, copy: Copy) -> Seen | None:
        """Names and sizes, without reading any file of a table but the newest one of its log.

        A bare folder has no log: its digest is that of the verifier's scope, so that the two can be compared.
        """
        if copy.kind is CopyKind.TOPIC:
            return self._topic(copy)
        if in_vault(copy):
            return None
        if place := copy.s3_table:
            from pii_tracer.app import s3_reading

            return s3_reading.listing(self._verification.estate, copy, place, self._verification.patterns)
        if copy.kind in OBJECTS:
            with self._verification.archives.bucket(copy):
                files = {self._named(v.key, v.version_id): v.size for v in self._verification.archives.listed(copy)}
            return Seen(files, lines_digest(f"{name} {files[name]}".encode() for name in sorted(files)))
        root = Path(copy.location)
        if not root.is_absolute():
            return None
        mask = self._verification.patterns.mask
        if log_of(copy.format) is None:
            bare = [(mask(f.path), f) for f in fingerprint(root)]
            scope = scope_lines(ScopeFile(path=f"{copy.id}/{name}", sha256=f.sha256) for name, f in bare)
            return Seen({name: f.size for name, f in bare}, lines_digest(scope))
        found = {mask(name): path.lstat().st_size for name, path in walk_files(root)}
        return Seen(found, manifest_of(root, copy.format))

    def hashed(self, step: Step, copy: Copy) -> Iterable[FileBefore] | None:
        """Every file of a folder; of a bucket the versions that the step may delete; of a table in S3 every version,
        and before old ones are cleared those that have come since.
        """
        if copy.kind is CopyKind.TOPIC or in_vault(copy):
            return None
        if place := copy.s3_table:
            return self._of_table(step, copy, place)
        if copy.kind in OBJECTS:
            return list(self._objects(step, copy)) if step.action is Action.S3_DELETE_VERSIONS else None
        root = Path(copy.location)
        if not root.is_absolute():
            return None
        mask = self._verification.patterns.mask
        return [FileBefore(path=mask(f.path), size=f.size, sha256=f.sha256) for f in fingerprint(root)]

    def _of_table(self, step: Step, copy: Copy, place: S3Location) -> Iterator[FileBefore]:
        from pii_tracer.app import s3_reading

        old = step.action in BY_VERSION
        known = [item.path for item in read_before(before_place(self._folder, copy.id))] if old else []
        about = (self._verification.estate, copy, place, self._verification.patterns)
        return s3_reading.hashed(*about, old=old, known=known)

    def _topic(self, copy: Copy) -> Seen | None:
        from pii_tracer.app.topic_records import state_of

        state = state_of(self._verification.estate, self._verification.base, copy)
        version = {"id": state.topic_id, "offsets": state.offsets}
        offsets = ",".join(f"{first}-{end}" for first, end in state.offsets)
        return Seen(None, lines_digest([canonical(version)]), f"{state.topic_id} {offsets}")

    def _objects(self, step: Step, copy: Copy) -> Iterator[FileBefore]:
        wanted = {(item["key"], item["version_id"]) for item in step.parameters["versions"]}
        with self._verification.archives.bucket(copy):
            for version in self._verification.archives.chosen(copy, wanted):
                sha256 = version.sha256
                if sha256 is None and version.evidence == "bytes":
                    with contextlib.suppress(EstateError), version.open() as stream:
                        sha256 = hashlib.sha256(stream.read()).hexdigest()
                yield FileBefore(path=self._named(version.key, version.version_id), size=version.size, sha256=sha256)

    def _named(self, key: str, version_id: str) -> str:
        return f"{self._verification.patterns.mask(key)}?versionId={version_id}"
