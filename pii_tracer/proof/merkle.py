"""Merkle trees, inclusion and consistency proofs after RFC 9162, section 2.1. Hashes are 32 raw bytes of SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def leaf_hash(entry: bytes) -> bytes:
    """Hash of a leaf: 0x00 in front, so that no leaf passes for a node."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node: 0x01 in front."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Root over leaf hashes; of an empty tree the hash of nothing (section 2.1.1)."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = _split(len(leaves))
    return node_hash(root(leaves[:split]), root(leaves[split:]))


def inclusion(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Path that proves leaf `index` (from 0) is in the tree (section 2.1.3.1).

    Raises:
        IndexError: no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion(leaves[:split], index), root(leaves[split:])]
    return [*inclusion(leaves[split:], index - split), root(leaves[:split])]


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], expected: bytes) -> bool:
    """Whether the path leads from the leaf to the root of a tree of `size` leaves (section 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    fn, sn, found = index, size - 1, leaf
    for sibling in path:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            found = node_hash(sibling, found)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            found = node_hash(found, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and found == expected


def consistency(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """Path that proves the first `old_size` leaves are unchanged (section 2.1.4.1).

    Raises:
        IndexError: `old_size` is not between 1 and the number of leaves.
    """
    if not 1 <= old_size <= len(leaves):
        raise IndexError(old_size)
    return _subproof(leaves, old_size, complete=True)


def _subproof(leaves: Sequence[bytes], old: int, *, complete: bool) -> list[bytes]:
    if old == len(leaves):
        return [] if complete else [root(leaves)]
    split = _split(len(leaves))
    if old <= split:
        return [*_subproof(leaves[:split], old, complete=complete), root(leaves[split:])]
    return [*_subproof(leaves[split:], old - split, complete=False), root(leaves[:split])]


def verify_consistency(old_size: int, new_size: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the new tree only added to the old one (section 2.1.4.2)."""
    if not 1 <= old_size <= new_size:
        return False
    if old_size == new_size:
        return not path and old_root == new_root
    nodes = list(path)
    if old_size & (old_size - 1) == 0:
        nodes.insert(0, old_root)
    if not nodes:
        return False
    fn, sn = old_size - 1, new_size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    old_found = new_found = nodes[0]
    for node in nodes[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            old_found, new_found = node_hash(node, old_found), node_hash(node, new_found)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            new_found = node_hash(new_found, node)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and old_found == old_root and new_found == new_root


def _split(size: int) -> int:
    """The largest power of two smaller than `size`."""
    return 1 << (size - 1).bit_length() - 1
