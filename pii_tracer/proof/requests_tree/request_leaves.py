"""The requests that a run answered, as leaves of a tree whose root its attestation signs.

The attestation itself names nobody. Each leaf has a salt of 128 random bits, so that whoever gets the hash of another
request beside their own cannot guess what it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import Field, ValidationError

from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.untrusted_json import split_lines, whole

REQUESTS = "requests.jsonl"
"""File of the evidence with the leaves, in the order of the plan."""


class RequestLeaf(Frozen):
    """What concerns one request alone. subject: keyed reference of the person. salt: 128 bits in hex."""

    id: str
    subject: str
    law: str
    salt: str = Field(pattern=r"\A[0-9a-f]{32}\z")

    def line(self) -> bytes:
        """As it is hashed: canonical JSON."""
        return canonical({"id": self.id, "subject": self.subject, "law": self.law, "salt": self.salt})


def request_leaves(requests: Iterable[PlannedRequest], salt: Callable[[str], str]) -> tuple[RequestLeaf, ...]:
    """The leaves of requests. salt: gives 128 random bits as hex for a request's id."""
    return tuple(RequestLeaf(id=r.id, subject=r.subject, law=r.law, salt=salt(r.id)) for r in requests)


def said_of(lines: Iterable[bytes]) -> dict[str, Any]:
    """What an attestation says of the requests that it is about: how many, and the root over their lines."""
    hashes = [merkle_tree.leaf_hash(line) for line in lines]
    return {"count": len(hashes), "root": merkle_tree.root(hashes).hex()}


def read_leaves(data: bytes) -> tuple[RequestLeaf, ...]:
    """The leaves in a file.

    Raises:
        ValueError: it holds something else, or a salt or a request twice.
    """
    if not whole(data):
        raise ValueError("the last request is truncated")
    found = tuple(map(_leaf, split_lines(data)))
    if len({leaf.salt for leaf in found}) != len(found) or len({leaf.id for leaf in found}) != len(found):
        raise ValueError("two requests have the same id or the same salt")
    return found


def leaves_under(said: Mapping[str, Any], data: bytes) -> tuple[RequestLeaf, ...]:
    """The leaves in a file, where they are those that an attestation is about. said: as `said_of`.

    Raises:
        ValueError: they are not.
    """
    found = read_leaves(data)
    if len(found) != said["count"]:
        raise ValueError("the number of requests differs")
    if said_of(split_lines(data))["root"] != said["root"]:
        raise ValueError("the requests do not match the root")
    return found


def salts_in(data: bytes) -> dict[str, str]:
    """The salts in a file of leaves, by the requests' ids; none where it is no such file."""
    try:
        return {leaf.id: leaf.salt for leaf in read_leaves(data)}
    except ValueError:
        return {}


def _leaf(line: bytes) -> RequestLeaf:
    """A line must be what its leaf is written as: one form alone has a hash."""
    try:
        leaf = RequestLeaf.model_validate_json(line)
    except ValidationError:
        raise ValueError("a line is not a request") from None
    if leaf.line() != line:
        raise ValueError("a line is not a request")
    return leaf
