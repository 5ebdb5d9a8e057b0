"""Our Merkle tree against pymerkle's, and its proofs against changed leaves."""

from __future__ import annotations

import pytest

from pii_tracer.proof import merkle

ENTRIES = [str(n).encode() for n in range(33)]
HASHES = [merkle.leaf_hash(e) for e in ENTRIES]


def test_roots_and_paths_are_pymerkles() -> None:
    pymerkle = pytest.importorskip("pymerkle")
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for size in range(1, len(ENTRIES) + 1):
        tree.append_entry(ENTRIES[size - 1])
        assert tree.get_root(size) == merkle.root(HASHES[:size]) == merkle.Tree(HASHES[:size]).root
        for index in range(size):
            theirs = tree.prove_inclusion(index + 1, size).serialize()["path"]
            assert theirs[1:] == [h.hex() for h in merkle.Tree(HASHES[:size]).inclusion(index)]


def test_inclusion_holds_for_each_leaf_and_for_no_other() -> None:
    for size in range(1, len(HASHES) + 1):
        leaves = HASHES[:size]
        root = merkle.root(leaves)
        for index in range(size):
            path = merkle.Tree(leaves).inclusion(index)
            assert merkle.verify_inclusion(leaves[index], index, size, path, root)
            assert not merkle.verify_inclusion(merkle.leaf_hash(b"x"), index, size, path, root)
            assert not merkle.verify_inclusion(leaves[index], size, size, path, root)
            assert not merkle.verify_inclusion(leaves[index], index, size, [*path, root], root)
            if size > 1:
                assert not merkle.verify_inclusion(leaves[index], (index + 1) % size, size, path, root)
                assert not merkle.verify_inclusion(leaves[index], index, size, path[:-1], root)


def test_consistency_holds_for_a_tree_that_only_grew() -> None:
    for size in range(1, len(HASHES) + 1):
        for old in range(1, size + 1):
            path = merkle.Tree(HASHES[:size]).consistency(old)
            old_root, new_root = merkle.root(HASHES[:old]), merkle.root(HASHES[:size])
            assert merkle.verify_consistency(old, size, old_root, new_root, path)
            changed = merkle.root([merkle.leaf_hash(b"x"), *HASHES[1:old]])
            assert not merkle.verify_consistency(old, size, changed, new_root, path)
            assert not merkle.verify_consistency(old, size, old_root, changed, path) or changed == new_root


def test_the_empty_tree_and_indexes_outside() -> None:
    assert merkle.root([]) == merkle.Tree([]).root
    assert merkle.root([]).hex().startswith("e3b0c442")
    for wrong in (-1, 1):
        with pytest.raises(IndexError):
            merkle.Tree(HASHES[:1]).inclusion(wrong)
    with pytest.raises(IndexError):
        merkle.Tree(HASHES[:1]).consistency(0)


def test_consistency_paths_are_those_of_the_rfcs_example() -> None:
    """RFC 9162, section 2.1.5: seven leaves, whose nodes it names a to l. (pymerkle cuts its paths another way.)"""
    leaves = HASHES[:7]
    c, d, j = leaves[2], leaves[3], leaves[6]
    g, i = merkle.node_hash(leaves[0], leaves[1]), merkle.node_hash(leaves[4], leaves[5])
    k = merkle.node_hash(g, merkle.node_hash(c, d))
    last = merkle.node_hash(i, j)
    tree = merkle.Tree(leaves)
    assert tree.consistency(3) == [c, d, g, last]
    assert tree.consistency(4) == [last]
    assert tree.consistency(6) == [i, j, k]
    assert tree.inclusion(0) == [leaves[1], merkle.node_hash(c, d), last]
    assert tree.inclusion(6) == [i, k]
