"""One leaf of an attestation, proved alone: a small file for somebody who asks about one object only.

It needs the envelope and the attester's key; no other leaf, and so nothing about anybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from pii_tracer.common.plurals import counted
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import ProofError, ReviewError
from pii_tracer.model.plan import digest_of
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.findings import Check, ProofFinding, open_envelope
from pii_tracer.proof.untrusted_json import canonical_object, json_object, split_lines
from pii_tracer.review import dsse


class ObjectProof(Frozen):
    """A leaf with its audit path (RFC 9162, section 2.1.3.1). Hashes in hex.

    attestation: digest of the envelope's bytes. leaf: as in `leaves.jsonl`, its nonce among its fields.
    """

    format_version: Literal[1]
    attestation: str
    index: int = Field(ge=0)
    tree_size: int = Field(ge=1)
    leaf: dict[str, Any]
    path: tuple[str, ...] = Field(max_length=64)

    def to_bytes(self) -> bytes:
        """As the file is written."""
        return (self.model_dump_json(indent=2) + "\n").encode()


def prove(
    attestation: bytes, leaves: bytes, *, uri: str | None = None, step: str | None = None, index: int | None = None
) -> ObjectProof:
    """The proof of one leaf, found by an object's URI (with `?versionId=…` where it has versions), a step, or a number.

    Raises:
        ProofError: no such leaf, or several; or the leaves are not the attestation's.
    """
    lines = split_lines(leaves)
    tree = merkle_tree.Tree(merkle_tree.leaf_hash(line) for line in lines)
    claimed = _claimed(attestation)
    if (claimed.get("root"), claimed.get("leaves")) != (tree.root.hex(), len(lines)):
        raise ProofError(
            "the evidence does not belong to this attestation", todo="use the unchanged evidence file of this run"
        )
    bodies = [canonical_object(line) or {} for line in lines]
    if index is not None:
        found = [index] if 0 <= index < len(lines) else []
    else:
        found = [i for i, body in enumerate(bodies) if _is(body, uri, step)]
    if len(found) != 1:
        raise ProofError(
            f"{counted(len(found), 'leaf is', 'leaves are')} about that" if found else "no leaf has this name",
            todo="give an object with its version (`s3://bucket/key?versionId=…`), a step, or a leaf's number",
        )
    return ObjectProof(
        format_version=1,
        attestation=digest_of(attestation),
        index=found[0],
        tree_size=len(lines),
        leaf=bodies[found[0]],
        path=tuple(node.hex() for node in tree.inclusion(found[0])),
    )


def verify_object(proof: bytes, attestation: bytes, trusted: Sequence[dsse.PublicKey]) -> tuple[ProofFinding, ...]:
    """All findings about one object's proof; none means that the signed attestation covers this leaf."""
    opened = open_envelope(attestation, trusted)
    if isinstance(opened, ProofFinding):
        return (opened,)
    try:
        told = ObjectProof.model_validate(json_object(proof))
        path = [bytes.fromhex(node) for node in told.path]
        leaf = merkle_tree.leaf_hash(canonical(told.leaf))
        claimed = opened["predicate"]["merkle"]
        root, size = bytes.fromhex(claimed["root"]), claimed["leaves"]
    except (ValidationError, ValueError, KeyError, TypeError, RecursionError):
        return (ProofFinding(Check.FORM, "the file is not a proof of an object"),)
    if told.attestation != digest_of(attestation):
        return (ProofFinding(Check.INCLUSION, "the proof belongs to a different attestation"),)
    if told.tree_size != size or not merkle_tree.verify_inclusion(leaf, told.index, size, path, root):
        return (ProofFinding(Check.INCLUSION, "the leaf is not in the attestation's tree"),)
    return ()


def _claimed(attestation: bytes) -> dict[str, Any]:
    try:
        claimed = dsse.unseal(attestation, ()).statement["predicate"]["merkle"]
    except (ReviewError, KeyError) as error:
        raise ProofError(
            "this file is not an attestation", todo="give the path of the run's attestation.json"
        ) from error
    return dict(claimed)


def _is(body: dict[str, Any], uri: str | None, step: str | None) -> bool:
    if step is not None:
        return body.get("kind") == "step" and body.get("step") == step
    version = body.get("version_id")
    names = {body.get("uri"), f"{body.get('uri')}?versionId={version}" if version else None}
    return body.get("kind") == "erased" and uri is not None and uri in names
