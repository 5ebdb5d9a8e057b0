"""What every object store must do. A test of a store inherits `StoreKit` and says how a store of its kind is made."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pii_tracer.lake.stores.base import Absent, Changed, ObjectStore, StoreError

PLAIN = "application/octet-stream"
ODD = ("a b/c+d", "ü/ß€𝄞", "%41/..%2F", "a/.hidden", "tab\there", "line\nend", "q?x=1#y", "'\"<&>\\", "a*[b]")
"""Names that are keys everywhere."""


class StoreKit:
    """Abstract: fixtures `store`, an empty store, and `refusing`, one that refuses to be listed and read.

    many: more objects than one answer of the store's holds, where that can be had. not_taken: odd keys that the tests'
    server has no room for. older_takes_its_place: where the current version is deleted, the one before is current again.
    keeps_versions: what is written over or deleted stays. has_markers: an object that is deleted is hidden behind one.
    has_uploads: it lists uploads that were begun and not ended. has_holds: a version under one is not deleted.
    writes_behind_markers: what is hidden behind a marker is absent to a write on that condition.
    """

    many = 30
    older_takes_its_place = True
    keeps_versions = has_markers = has_uploads = has_holds = True
    writes_behind_markers = True
    not_taken: tuple[str, ...] = ()

    @pytest.fixture
    def store(self) -> ObjectStore:
        raise NotImplementedError

    @pytest.fixture
    def refusing(self) -> ObjectStore:
        raise NotImplementedError

    def delete(self, store: ObjectStore, key: str) -> None:
        """Delete what stands there without naming a version; only of stores with markers."""
        raise NotImplementedError

    def begin_upload(self, store: ObjectStore, key: str) -> None:
        """Begin an upload and leave it; only of stores that can have such."""
        raise NotImplementedError

    def hold(self, store: ObjectStore, key: str, version_id: str) -> ObjectStore:
        """Put a hold on a version; only of stores that have holds."""
        pytest.skip("its server keeps no holds")

    def test_what_is_written_is_read(self, store: ObjectStore) -> None:
        mark = put(store, "a/b", b"some bytes")
        assert store.read("a/b", 100) == (b"some bytes", mark)
        assert store.read("a/b", 4) == (b"some", mark)
        assert store.read("a/b", 10).data == b"some bytes"

    def test_an_empty_object_is_one(self, store: ObjectStore) -> None:
        put(store, "empty", b"")
        assert store.read("empty", 1).data == b""
        assert [(v.key, v.size, v.latest) for v in store.versions("")] == [("empty", 0, True)]

    def test_what_is_not_there_is_absent(self, store: ObjectStore) -> None:
        put(store, "a/b", b"1")
        for key in ("a", "a/b/c", "other"):
            with pytest.raises(StoreError) as caught:
                store.read(key, 1)
            assert caught.value.where == f"{store.name}/{key}"
            assert "1" not in caught.value.code
        with pytest.raises(Absent):
            store.read("other", 1)

    def test_an_object_is_made_once(self, store: ObjectStore) -> None:
        mark = put(store, "k", b"first")
        with pytest.raises(Changed):
            put(store, "k", b"second")
        assert store.read("k", 100) == (b"first", mark)

    def test_a_write_on_a_mark_needs_the_mark(self, store: ObjectStore) -> None:
        first = put(store, "k", b"first")
        second = store.put_if_unchanged("k", b"second", PLAIN, first)
        assert second != first
        with pytest.raises(Changed):
            store.put_if_unchanged("k", b"third", PLAIN, first)
        with pytest.raises(Changed):
            store.put_if_unchanged("nothing", b"third", PLAIN, first)
        assert store.read("k", 100) == (b"second", second)
        assert {v.key for v in store.versions("")} == {"k"}

    def test_of_many_who_write_at_once_one_succeeds(self, store: ObjectStore) -> None:
        first = put(store, "k", b"first")

        def write(number: int) -> bool:
            try:
                store.put_if_unchanged("k", b"%d" % number, PLAIN, first)
            except Changed:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(write, range(8))) == 1

    def test_what_is_written_over_stays_as_a_version_or_is_gone(self, store: ObjectStore) -> None:
        first = put(store, "k", b"first")
        store.put_if_unchanged("k", b"second!", PLAIN, first)
        listed = list(store.versions("k"))
        assert [(v.size, v.delete_marker) for v in listed if v.latest] == [(7, False)]
        old = [v for v in listed if not v.latest]
        assert [v.size for v in old] == ([5] if self.keeps_versions else [])
        assert len({v.version_id for v in listed}) == len(listed)
        assert all(v.modified.endswith("Z") for v in listed)

    def test_one_version_is_deleted_and_no_other(self, store: ObjectStore) -> None:
        first = put(store, "k", b"first")
        store.put_if_unchanged("k", b"second!", PLAIN, first)
        put(store, "k2", b"other")
        newest = next(v for v in store.versions("k") if v.latest and v.key == "k")
        store.delete_version("k", newest.version_id)
        left = {(v.key, v.size) for v in store.versions("")}
        assert left == {("k2", 5)} | ({("k", 5)} if self.keeps_versions else set())
        if self.keeps_versions and self.older_takes_its_place:
            assert store.read("k", 100).data == b"first", "the one before is the current one again"
        store.delete_version("k", newest.version_id)
        assert {(v.key, v.size) for v in store.versions("")} == left, "twice does nothing"

    def test_a_marker_hides_and_is_listed(self, store: ObjectStore) -> None:
        if not self.has_markers:
            pytest.skip("no markers")
        put(store, "k", b"first")
        self.delete(store, "k")
        with pytest.raises(Absent):
            store.read("k", 1)
        listed = list(store.versions(""))
        assert sorted((v.delete_marker, v.latest, v.size) for v in listed) == [(False, False, 5), (True, True, 0)]
        store.delete_version("k", next(v.version_id for v in listed if v.delete_marker))
        assert store.read("k", 100).data == b"first"
        self.delete(store, "k")
        if not self.writes_behind_markers:
            with pytest.raises(Changed):
                put(store, "k", b"again")
            marker = next(v for v in store.versions("") if v.delete_marker)
            store.delete_version("k", marker.version_id)
            store.delete_version("k", next(iter(store.versions(""))).version_id)
        put(store, "k", b"again")
        assert store.read("k", 100).data == b"again", "behind a marker nothing stands"

    def test_unfinished_uploads_are_told_apart(self, store: ObjectStore) -> None:
        if not self.has_uploads:
            assert list(store.uploads("")) == []
            return
        for key in ("a/1", "a/2", "b/1"):
            self.begin_upload(store, key)
        assert sorted(upload.key for upload in store.uploads("a/")) == ["a/1", "a/2"]
        assert len(list(store.uploads(""))) == 3
        assert list(store.versions("")) == []
        assert all(upload.upload_id and upload.touched for upload in store.uploads(""))

    def test_what_is_held_is_not_deleted(self, store: ObjectStore) -> None:
        if not self.has_holds:
            pytest.skip("no holds")
        put(store, "k", b"first")
        version = next(iter(store.versions("k"))).version_id
        held = self.hold(store, "k", version)
        with pytest.raises(StoreError):
            held.delete_version("k", version)
        assert held.read("k", 100).data == b"first"

    def test_a_prefix_is_letters_and_no_folder(self, store: ObjectStore) -> None:
        for key in ("t/1", "t2/1", "ta", "s/t/1"):
            put(store, key, b"1")
        assert [v.key for v in store.versions("t/")] == ["t/1"]
        assert sorted(v.key for v in store.versions("t")) == ["t/1", "t2/1", "ta"]
        assert list(store.versions("nowhere/")) == []

    def test_a_listing_goes_to_its_end(self, store: ObjectStore) -> None:
        keys = {f"many/{number:05}" for number in range(self.many)}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: put(store, key, b"1"), keys))
        listed = [v.key for v in store.versions("many/")]
        assert len(listed) == len(keys)
        assert set(listed) == keys

    @pytest.mark.parametrize("key", ODD)
    def test_keys_are_taken_as_they_are(self, store: ObjectStore, key: str) -> None:
        if key in self.not_taken:
            pytest.skip("the server of the tests does not take it")
        mark = put(store, key, b"odd")
        assert store.read(key, 100) == (b"odd", mark)
        [version] = store.versions(key)
        assert version.key == key
        store.delete_version(key, version.version_id)
        assert list(store.versions("")) == []

    @pytest.mark.parametrize(
        "ask",
        [
            lambda store: list(store.versions("")),
            lambda store: store.read("k", 1),
            lambda store: put(store, "k", b"1"),
            lambda store: store.put_if_unchanged("k", b"1", PLAIN, '"0"'),
            lambda store: store.delete_version("k", "null"),
        ],
    )
    def test_a_refusal_is_an_error_and_no_empty_answer(
        self, refusing: ObjectStore, ask: Callable[[ObjectStore], object]
    ) -> None:
        with pytest.raises(StoreError) as caught:
            ask(refusing)
        assert not isinstance(caught.value, Absent | Changed)
        assert caught.value.code in caught.value.what
        assert str(caught.value.where).startswith(refusing.name)

    def test_refused_uploads_are_an_error(self, refusing: ObjectStore) -> None:
        if not self.has_uploads:
            pytest.skip("it cannot have any")
        with pytest.raises(StoreError):
            list(refusing.uploads(""))


class FolderKit(StoreKit):
    """For stores that are folders, whose keys are paths of files in them."""

    keeps_versions = has_markers = has_uploads = has_holds = False

    @pytest.mark.parametrize("key", ["", "../up", "a/../b", "/etc/passwd", "a//b", "a/", ".", "a\0b"])
    def test_a_key_never_leads_out_of_the_folder(self, store: ObjectStore, key: str) -> None:
        for ask in (
            lambda: store.read(key, 1),
            lambda: put(store, key, b"1"),
            lambda: store.delete_version(key, "null"),
        ):
            with pytest.raises(StoreError, match="InvalidName"):
                ask()
        self.refuse_anything_in(store)

    def refuse_anything_in(self, store: ObjectStore) -> None:
        """Assert that nothing was written."""
        assert list(store.versions("")) == []


def put(store: ObjectStore, key: str, data: bytes) -> str:
    return store.put_if_absent(key, data, PLAIN)
