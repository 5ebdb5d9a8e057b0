"""The steps on the strict stand-in: what the naive way leaves, what stops a step, and what a killed one leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.gcs.running import Run, killed_after, refs
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.hdfs.running import Killed
from tests.hdfs.shop import MAIL, OTHERS, PERSON, csv


@pytest.fixture
def shop(gcs: Gcs, tmp_path: Path) -> Shop:
    shop = Shop.of(gcs, tmp_path)
    shop.exports = ["a"]
    shop.write()
    return shop


def test_a_plain_overwrite_and_a_plain_delete_leave_the_person(shop: Shop, gcs: Gcs) -> None:
    shop.put("a/x.csv", csv(OTHERS[0], PERSON))
    shop.put("a/x.csv", csv(OTHERS[0]))
    shop.put("a/y.csv", csv(PERSON))
    gcs.delete(BUCKET, "a/y.csv")
    assert gcs.states(BUCKET) == ["live", "noncurrent", "noncurrent"], "generations keep what was written over"
    gcs.buckets[BUCKET].soft_delete = 604_800
    for old in refs(shop, "noncurrent"):
        gcs.store(BUCKET).delete_version(old["key"], old["version_id"])
    assert gcs.states(BUCKET) == ["live", "soft_deleted", "soft_deleted"], "and soft delete keeps the generations"
    assert MAIL.encode() in gcs.restore(BUCKET, "a/y.csv"), "which anybody with the right brings back"


def test_old_generations_go_and_the_wait_ends_with_the_last_byte(shop: Shop, gcs: Gcs) -> None:
    gcs.buckets[BUCKET].soft_delete = 1
    shop.put("a/x.csv", csv(PERSON), storageClass="NEARLINE")
    shop.put("a/x.csv", csv(OTHERS[0], PERSON), storageClass="NEARLINE")
    shop.put("a/y.csv", csv(OTHERS[1]))
    rewrite = Run.rewriting(shop)
    replaced = rewrite.parameters["versions"]
    rewrite.check()
    assert rewrite.probe() is Progress.NOT_STARTED
    facts = rewrite.run()
    assert (facts["files_rewritten"], facts["left_alone"], facts["rows_dropped"]) == (1, 1, 1)
    assert rewrite.seen().ok
    assert shop.read("a/x.csv") == csv(OTHERS[0])
    assert gcs.buckets[BUCKET].objects[-1]["storageClass"] == "NEARLINE"
    delete = Run.deleting(shop, replaced)
    delete.check()
    done = delete.run()
    assert done["versions_deleted"] == 2
    assert {file["sha256_before"] for file in done["files"]} == {None}, (
        "the plan's digests are keyed: they are no SHA-256"
    )
    assert delete.seen().ok
    wait = Run.waiting(shop, [*replaced, *delete.parameters["versions"]])
    waits = wait.outcome()
    assert waits.waiting_until is not None
    assert waits.facts["kept"] == 2
    assert "kept until 20" in wait.seen().findings[0]
    time.sleep(1.1)
    assert wait.outcome().waiting_until is None
    assert wait.seen().ok
    assert gcs.states(BUCKET) == ["live", "live"]


def test_a_run_that_is_killed_anywhere_is_taken_up_again(shop: Shop, gcs: Gcs, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare() -> None:
        gcs.buckets[BUCKET].objects.clear()
        for n in range(2):
            shop.put(f"a/{n}.csv", csv(OTHERS[n], PERSON))

    def killed(run: Run, moment: int) -> bool:
        with killed_after(monkeypatch, moment) as count:
            try:
                run.run()
            except Killed:
                return True
            assert count() < moment
            return False

    moment = 1
    while True:
        prepare()
        run = Run.rewriting(shop)
        if not killed(run, moment):
            break
        assert run.probe() in (Progress.PARTIAL, Progress.DONE)
        facts = run.run()
        assert (facts["rows_dropped"], facts["files_rewritten"]) == (2, 2)
        assert [shop.read(f"a/{n}.csv") for n in range(2)] == [csv(OTHERS[0]), csv(OTHERS[1])]
        delete = Run.deleting(shop, run.parameters["versions"])
        if killed(delete, moment):
            assert delete.probe() in (Progress.PARTIAL, Progress.DONE)
        assert delete.run()["versions_deleted"] == 2
        assert delete.seen().ok
        assert gcs.states(BUCKET) == ["live", "live"]
        moment += 1
    assert moment == 3, "each object is one write"


def _another(shop: Shop) -> None:
    shop.put("a/x.csv", csv(PERSON, OTHERS[1]))


def _metadata(shop: Shop) -> None:
    shop.gcs.buckets[BUCKET].objects[-1]["metageneration"] += 1


def _held(shop: Shop) -> None:
    shop.gcs.buckets[BUCKET].objects[-1]["temporaryHold"] = True


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [(_another, "changed an object"), (_metadata, "changed an object"), (_held, "temporary hold")],
)
def test_what_changed_or_is_held_is_left_as_it_is(shop: Shop, meanwhile: Callable[[Shop], None], told: str) -> None:
    shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    run = Run.rewriting(shop)
    meanwhile(shop)
    before = shop.gcs.writes
    for act in (run.check, run.run):
        with pytest.raises(RunError, match=told):
            act()
    assert not run.seen().ok
    assert shop.gcs.writes == before


def test_a_writer_between_the_look_and_the_write_is_seen_by_the_store(
    shop: Shop, gcs: Gcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The condition goes with the write: whoever came between keeps what they wrote."""
    from pii_tracer.lake.stores.gcs.store import GcsStore

    shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    run, real = Run.rewriting(shop), GcsStore._put

    def between(self: GcsStore, *args: object, **conditions: str) -> object:
        shop.put("a/x.csv", csv(OTHERS[3]))
        return real(self, *args, **conditions)  # type: ignore[arg-type]

    monkeypatch.setattr(GcsStore, "_put", between)
    with pytest.raises(RunError, match="changed an object"):
        run.run()
    assert shop.read("a/x.csv") == csv(OTHERS[3])


def test_the_last_version_of_a_deleted_object_stays_unless_agreed(shop: Shop, gcs: Gcs) -> None:
    shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    rewrite = Run.rewriting(shop)
    rewrite.run()
    gcs.delete(BUCKET, "a/x.csv")
    delete = Run.deleting(shop, rewrite.parameters["versions"])
    with pytest.raises(RunError, match="only its old version has rows of other people"):
        delete.run()
    assert gcs.states(BUCKET) == ["noncurrent", "noncurrent"]
    agreed = Run.deleting(shop, rewrite.parameters["versions"], without_object=True)
    agreed.run()
    assert gcs.states(BUCKET) == []


def test_an_old_generation_that_is_hidden_or_only_said_to_be_deleted_is_seen(shop: Shop, gcs: Gcs) -> None:
    shop.put("a/x.csv", csv(PERSON, OTHERS[0]))
    rewrite = Run.rewriting(shop)
    rewrite.run()
    gcs.lies.old = True
    delete = Run.deleting(shop, rewrite.parameters["versions"])
    assert not delete.seen().ok
    gcs.lies.kept = True
    delete.run()
    assert not delete.seen().ok, "a deletion that is only answered is none"
    gcs.lies.kept = False
    assert delete.run()["versions_deleted"] == 1
    assert delete.seen().ok


def test_a_live_object_that_goes_with_its_old_version_stops_the_step(shop: Shop, gcs: Gcs) -> None:
    for name in ("x", "y"):
        shop.put(f"a/{name}.csv", csv(PERSON, OTHERS[0]))
    rewrite = Run.rewriting(shop)
    rewrite.run()
    gcs.lies.astray = True
    delete = Run.deleting(shop, rewrite.parameters["versions"])
    with pytest.raises(RunError, match="disappeared after the deletion"):
        delete.run()
    assert gcs.states(BUCKET).count("live") == 1, "no second object is lost"
