"""The estate's log of attestations: one line each, only ever added to, and a Merkle tree over its lines.

Every attestation says how large the log was before it, the root over it, and proves (RFC 9162, sections 2.1.3 and
2.1.4) that this log only added the attestation before to the log that the one before was made over. So who holds any
two of them can tell whether one in between was taken out or changed. docs/adr/0006 says why.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.errors import ProofError
from pii_tracer.model.plan import digest_of
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.untrusted_json import (
    canonical_object,
    read_limited,
    split_lines,
    whole,
)
from pii_tracer.run.journal import write_and_sync

LOG_NAME = "attestations.jsonl"


def log_line(attestation: bytes, plan_id: str) -> bytes:
    """The line for an attestation's envelope."""
    return canonical({"attestation": digest_of(attestation), "plan": plan_id})


class History:
    """The lines of a log with their tree."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._tree = merkle_tree.Tree(merkle_tree.leaf_hash(line) for line in lines[:-1])
        self._before, self._last = self._tree.root, b""
        for self._last in lines[-1:]:
            self._tree.append(merkle_tree.leaf_hash(self._last))

    def position(self) -> dict[str, Any]:
        """What an attestation says about the log before it: size, root, and proofs about the last step."""
        size = len(self._tree)
        said: dict[str, Any] = {"size": size, "root": self._tree.root.hex(), "previous": None}
        if size:
            last = canonical_object(self._last) or {}
            said["previous"] = {
                "attestation": last["attestation"],
                "plan": last["plan"],
                "size": size - 1,
                "root": self._before.hex(),
                "inclusion": [node.hex() for node in self._tree.inclusion(size - 1)],
                "consistency": [node.hex() for node in self._tree.consistency(size - 1)] if size > 1 else [],
            }
        return said


def check_position(said: Mapping[str, Any]) -> list[str]:
    """What does not hold in an attestation's own words about the log.

    Raises:
        KeyError, TypeError, ValueError: it has not the form it must have.
    """
    size, root, previous = int(said["size"]), bytes.fromhex(said["root"]), said["previous"]
    if size == 0:
        return (
            []
            if previous is None and root == merkle_tree.root([])
            else ["the attestation states that the log is empty, but it is not"]
        )
    line = canonical({"attestation": previous["attestation"], "plan": previous["plan"]})
    before, path = bytes.fromhex(previous["root"]), [bytes.fromhex(node) for node in previous["consistency"]]
    found = []
    if previous["size"] != size - 1:
        found.append("the previous attestation is at a different place in the log")
    inclusion = [bytes.fromhex(node) for node in previous["inclusion"]]
    if not merkle_tree.verify_inclusion(merkle_tree.leaf_hash(line), size - 1, size, inclusion, root):
        found.append("the previous attestation is not in the log's tree")
    grown = (
        before == merkle_tree.root([])
        if size == 1
        else merkle_tree.verify_consistency(size - 1, size, before, root, path)
    )
    if not grown:
        found.append("the log does not extend the previous log: lines were changed or removed")
    return found


def check_previous(said: Mapping[str, Any], envelope: bytes, before: Mapping[str, Any]) -> list[str]:
    """Whether an attestation (its envelope, and what it says about the log) is the one before `said`'s."""
    previous = said["previous"]
    if previous is None:
        return ["a previous attestation was given, but this attestation states that it is the first"]
    if digest_of(envelope) != previous["attestation"]:
        return ["the given attestation is not the previous one (give the previous one, or the whole log)"]
    if (before["size"], before["root"]) != (previous["size"], previous["root"]):
        return ["the history of the log in this attestation differs from the previous one"]
    return []


def check_log(said: Mapping[str, Any], envelope: bytes, log: bytes) -> list[str]:
    """Whether the whole log (its file) holds this attestation where it must stand, after the history it tells, and no
    later one of the same plan: that one took its place."""
    lines = split_lines(log) if log else []
    size = int(said["size"])
    if len(lines) <= size:
        return ["the log ends before this attestation: lines at its end were removed"]
    found = []
    if merkle_tree.root([merkle_tree.leaf_hash(line) for line in lines[:size]]).hex() != said["root"]:
        found.append("the log before this attestation differs from the log that it covers")
    stands = canonical_object(lines[size])
    if stands is None or stands.get("attestation") != digest_of(envelope):
        found.append("the log has a different attestation at the position of this one")
    after = lines[size + 1 :] if whole(log) else lines[size + 1 : -1]  # a torn line was never told to stand
    if not all(map(_is_line, after)):
        found.append("a line after this attestation does not belong to a log")
    elif stands is not None and any(stands.get("plan") == (canonical_object(line) or {})["plan"] for line in after):
        found.append("the run was attested again later: use the later attestation")
    return found


def _is_line(line: bytes) -> bool:
    return set(canonical_object(line) or ()) == {"attestation", "plan"}


@dataclass
class AttestationLog:
    """The log file. Use it inside `locked`."""

    path: Path

    @contextmanager
    def locked(self) -> Iterator[tuple[bytes, ...]]:
        """Nobody else reads or adds while this is open. Gives the lines.

        A torn last line is cut off: its writer was never told that it stands.

        Raises:
            ProofError: unreadable, or a line that no log has.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            data = read_limited(self.path)
            kept = data[: data.rfind(b"\n") + 1]
            if len(kept) != len(data):
                os.ftruncate(fd, len(kept))
                os.fsync(fd)
            stands = split_lines(kept) if kept else []
            if not all(map(_is_line, stands)):
                raise ProofError("the log of attestations is broken", where=str(self.path), todo="restore the file")
            yield tuple(stands)
        finally:
            os.close(fd)

    def append(self, line: bytes) -> None:
        """Add a line, inside `locked`; it is on the disk when this returns."""
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            write_and_sync(fd, line + b"\n")
        finally:
            os.close(fd)
