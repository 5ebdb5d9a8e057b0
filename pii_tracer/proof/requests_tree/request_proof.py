"""The proof of one request: the attestation of its run, and the path from the request's leaf to the root that it signs.

One small file for the person who asked. It has hashes of other requests, and says nothing else of them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ProofError, ReviewError
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.requests_tree.request_leaves import RequestLeaf, leaves_under
from pii_tracer.proof.untrusted_json import json_object, split_lines
from pii_tracer.review import dsse


class RequestProof(Frozen):
    """A request with its audit path (RFC 9162, section 2.1.3.1). Hashes in hex.

    attestation: the envelope, byte for byte. stamp: its time stamp in base64, where it has one. The size of the tree
    is in the attestation.
    """

    format_version: Literal[1]
    request: RequestLeaf
    index: int = Field(ge=0)
    path: tuple[str, ...] = Field(max_length=64)
    attestation: str
    stamp: str | None

    @field_validator("attestation")
    @classmethod
    def _is_text(cls, attestation: str) -> str:
        attestation.encode()
        return attestation

    @field_validator("stamp")
    @classmethod
    def _is_base64(cls, stamp: str | None) -> str | None:
        if stamp is not None:
            base64.b64decode(stamp, validate=True)
        return stamp

    @field_validator("path")
    @classmethod
    def _is_hashes(cls, path: tuple[str, ...]) -> tuple[str, ...]:
        if not all(len(bytes.fromhex(node)) == 32 for node in path):
            raise ValueError("a hash of another length")
        return path

    def to_bytes(self) -> bytes:
        """As the file is written."""
        return (self.model_dump_json(indent=2) + "\n").encode()

    @property
    def envelope(self) -> bytes:
        """The attestation's bytes."""
        return self.attestation.encode()

    @property
    def time_stamp(self) -> bytes | None:
        """The time stamp's bytes."""
        return None if self.stamp is None else base64.b64decode(self.stamp)

    def is_under(self, said: Mapping[str, Any]) -> bool:
        """Whether the request is one of those that an attestation is about. said: its own words.

        Raises:
            LookupError, TypeError, ValueError: they do not have the form that they must have.
        """
        path = [bytes.fromhex(node) for node in self.path]
        leaf = merkle_tree.leaf_hash(self.request.line())
        return merkle_tree.verify_inclusion(leaf, self.index, said["count"], path, bytes.fromhex(said["root"]))


def proof_in(data: bytes) -> RequestProof | None:
    """The proof of a request in a file; None where it is something else, an attestation for one.

    Raises:
        ValueError: it is such a proof, and does not have the form that it must have.
    """
    try:
        found = json_object(data)
    except ValueError:
        return None
    if "attestation" not in found or "request" not in found:
        return None
    return RequestProof.model_validate(found)


def prove_request(attestation: bytes, stamp: bytes | None, leaves: bytes, request: str) -> RequestProof | None:
    """The proof of one request; None where it is not among those of the attestation. leaves: the file of them.

    Raises:
        ProofError: the leaves are not the attestation's.
    """
    try:
        found = leaves_under(dsse.unseal(attestation, ()).statement["predicate"]["requests"], leaves)
    except (ReviewError, ValueError, LookupError, TypeError):
        raise ProofError(
            "the request file does not belong to this attestation", todo="use the unchanged evidence file of this run"
        ) from None
    index = next((number for number, leaf in enumerate(found) if leaf.id == request), None)
    if index is None:
        return None
    tree = merkle_tree.Tree(merkle_tree.leaf_hash(line) for line in split_lines(leaves))
    return RequestProof(
        format_version=1,
        request=found[index],
        index=index,
        path=tuple(node.hex() for node in tree.inclusion(index)),
        attestation=attestation.decode(),
        stamp=None if stamp is None else base64.b64encode(stamp).decode(),
    )
