"""Our Merkle tree against pymerkle's, and its proofs against changed leaves."""

from __future__ import annotations

import pytest

from pii_tracer.proof import merkle_tree

ENTRIES = [str(n).encode() for n in range(33)]
HASHES = [merkle_tree.leaf_hash(e) for e in ENTRIES]


def test_roots_and_paths_are_pymerkles() -> None:
    pymerkle = pytest.importorskip("pymerkle")
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for size in range(1, len(ENTRIES) + 1):
        tree.append_entry(ENTRIES[size - 1])
        assert tree.get_root(size) == merkle_tree.root(HASHES[:size]) == merkle_tree.Tree(HASHES[:size]).root
        for index in range(size):
            theirs = tree.prove_inclusion(index + 1, size).serialize()["path"]
            assert theirs[1:] == [h.hex() for h in merkle_tree.Tree(HASHES[:size]).inclusion(index)]


def test_inclusion_holds_for_each_leaf_and_for_no_other() -> None:
    for size in range(1, len(HASHES) + 1):
        leaves = HASHES[:size]
        root = merkle_tree.root(leaves)
        for index in range(size):
            path = merkle_tree.Tree(leaves).inclusion(index)
            assert merkle_tree.verify_inclusion(leaves[index], index, size, path, root)
            assert not merkle_tree.verify_inclusion(merkle_tree.leaf_hash(b"x"), index, size, path, root)
            assert not merkle_tree.verify_inclusion(leaves[index], size, size, path, root)
            assert not merkle_tree.verify_inclusion(leaves[index], index, size, [*path, root], root)
            if size > 1:
                assert not merkle_tree.verify_inclusion(leaves[index], (index + 1) % size, size, path, root)
                assert not merkle_tree.verify_inclusion(leaves[index], index, size, path[:-1], root)


def test_consistency_holds_for_a_tree_that_only_grew() -> None:
    for size in range(1, len(HASHES) + 1):
        for old in range(1, size + 1):
            path = merkle_tree.Tree(HASHES[:size]).consistency(old)
            old_root, new_root = merkle_tree.root(HASHES[:old]), merkle_tree.root(HASHES[:size])
            assert merkle_tree.verify_consistency(old, size, old_root, new_root, path)
            changed = merkle_tree.root([merkle_tree.leaf_hash(b"x"), *HASHES[1:old]])
            assert not merkle_tree.verify_consistency(old, size, changed, new_root, path)
            assert not merkle_tree.verify_consistency(old, size, old_root, changed, path) or changed == new_root


def test_the_empty_tree_and_indexes_outside() -> None:
    assert merkle_tree.root([]) == merkle_tree.Tree([]).root
    assert merkle_tree.root([]).hex().startswith("e3b0c442")
    for wrong in (-1, 1):
        with pytest.raises(IndexError):
            merkle_tree.Tree(HASHES[:1]).inclusion(wrong)
    with pytest.raises(IndexError):
        merkle_tree.Tree(HASHES[:1]).consistency(0)


def test_consistency_paths_are_those_of_the_rfcs_example() -> None:
    """RFC 9162, section 2.1.5: seven leaves, whose nodes it names a to l. (pymerkle cuts its paths another way.)"""
    leaves = HASHES[:7]
    c, d, j = leaves[2], leaves[3], leaves[6]
    g, i = merkle_tree.node_hash(leaves[0], leaves[1]), merkle_tree.node_hash(leaves[4], leaves[5])
    k = merkle_tree.node_hash(g, merkle_tree.node_hash(c, d))
    last = merkle_tree.node_hash(i, j)
    tree = merkle_tree.Tree(leaves)
    assert tree.consistency(3) == [c, d, g, last]
    assert tree.consistency(4) == [last]
    assert tree.consistency(6) == [i, j, k]
    assert tree.inclusion(0) == [leaves[1], merkle_tree.node_hash(c, d), last]
    assert tree.inclusion(6) == [i, k]


def test_a_tree_that_grew_is_the_tree_of_all_its_leaves() -> None:
    grown = merkle_tree.Tree(())
    for size in range(1, len(HASHES) + 1):
        grown.append(HASHES[size - 1])
        whole = merkle_tree.Tree(HASHES[:size])
        assert (len(grown), grown.root) == (size, whole.root)
        assert [grown.inclusion(n) for n in range(size)] == [whole.inclusion(n) for n in range(size)]
        assert [grown.consistency(n) for n in range(1, size)] == [whole.consistency(n) for n in range(1, size)]
