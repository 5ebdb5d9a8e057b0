"""Merkle trees, inclusion and consistency proofs after RFC 9162, section 2.1. Hashes are 32 raw bytes of SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def leaf_hash(entry: bytes) -> bytes:
    """Hash of a leaf: 0x00 in front, so that no leaf passes for a node."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node: 0x01 in front."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A tree over leaf hashes, every level kept: n + n/2 + n/4 + … hashes, and any path is looked up, not computed.

    A level's last node without a partner goes up as it is; that is the tree of section 2.1.1, where the left part is
    always the largest power of two.
    """

    def __init__(self, leaves: Iterable[bytes]) -> None:
        """leaves: leaf hashes (`leaf_hash`), 32 bytes each."""
        level = list(leaves)
        self._levels = [level]
        while len(level) > 1:
            level = _parents(level)
            self._levels.append(level)

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash: only the right edge changes."""
        self._levels[0].append(leaf)
        height, node = 0, leaf
        while len(level := self._levels[height]) > 1:
            node = node_hash(level[-2], level[-1]) if len(level) % 2 == 0 else level[-1]
            if height + 1 == len(self._levels):
                self._levels.append([])
            above = self._levels[height + 1]
            above[(len(level) - 1) >> 1 :] = [node]
            height += 1

    def __len__(self) -> int:
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The root; of an empty tree the hash of nothing (section 2.1.1)."""
        return self._levels[-1][0] if len(self) else hashlib.sha256(b"").digest()

    def inclusion(self, index: int) -> list[bytes]:
        """Path that proves leaf `index` (from 0) is in the tree (section 2.1.3.1).

        Raises:
            IndexError: no such leaf.
        """
        if not 0 <= index < len(self):
            raise IndexError(index)
        path = []
        for level in self._levels[:-1]:
            sibling = index ^ 1
            if sibling < len(level):
                path.append(level[sibling])
            index >>= 1
        return path

    def consistency(self, old_size: int) -> list[bytes]:
        """Path that proves the first `old_size` leaves are unchanged (section 2.1.4.1).

        Raises:
            IndexError: `old_size` is not between 1 and the number of leaves.
        """
        if not 1 <= old_size <= len(self):
            raise IndexError(old_size)
        return self._subproof(old_size, 0, len(self), complete=True)

    def _subproof(self, old: int, first: int, end: int, *, complete: bool) -> list[bytes]:
        """Over leaves `first` to `end`; old: how many are old. complete: whether these are the whole old tree."""
        if old == end - first:
            return [] if complete else [self._node(first, end)]
        middle = first + _split(end - first)
        if first + old <= middle:
            return [*self._subproof(old, first, middle, complete=complete), self._node(middle, end)]
        return [*self._subproof(first + old - middle, middle, end, complete=False), self._node(first, middle)]

    def _node(self, first: int, end: int) -> bytes:
        """Root over leaves `first` to `end`, which is a node of this tree."""
        height = (end - first - 1).bit_length()
        return self._levels[height][first >> height]


def root(leaves: Iterable[bytes]) -> bytes:
    """Root over leaf hashes; keeps one level at a time."""
    level = list(leaves)
    while len(level) > 1:
        level = _parents(level)
    return level[0] if level else hashlib.sha256(b"").digest()


def _parents(level: list[bytes]) -> list[bytes]:
    sha256, pairs = hashlib.sha256, iter(level)
    above = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
    if len(level) % 2:
        above.append(level[-1])
    return above


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
