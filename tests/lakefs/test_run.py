"""The steps on a repository: what the naive way leaves, what the plan's steps leave, and who else is touched: nobody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pii_tracer.lake.stores.lakefs.client import PLAN_MARK, LakefsClient
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import PiiTracerError, RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.verify.row_checks import compare
from tests.lakefs import shop as shop_module
from tests.lakefs.running import Keyring, Killed, Run, killed_after, prepared
from tests.lakefs.shop import MAIL, NOW, OTHERS, PERSON, PREFIX, USER, Shop, csv, parquet

NAME = "ashakumar"
IMMEDIATE = ("--retention", "immediate", "--reason", "test")
REWRITE, SET, AWAIT, RESTORE = (
    "lakefs_rewrite",
    "lakefs_set_rules",
    "lakefs_await_collection",
    "lakefs_restore_rules",
)


def heads(shop: Shop) -> dict[str, dict[str, bytes]]:
    """What each branch shows."""
    return {
        name: {path: shop.lakefs.bytes_of(entry) for path, entry in shop.repo.tree(name).items()}
        for name in shop.repo.heads
    }


def without_person(shown: dict[str, dict[str, bytes]]) -> dict[str, dict[str, bytes]]:
    line = f"{USER},{MAIL}\n".encode()
    return {name: {path: data.replace(line, b"") for path, data in tree.items()} for name, tree in shown.items()}


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Shop:
    """The shop, with a name for the person's key."""
    monkeypatch.setattr(shop_module, "USER", NAME)
    monkeypatch.setattr(shop_module, "PERSON", (NAME, MAIL))
    keys = KeySet(name="user.uid", origin="uid", weak=False, values=(("person", NAME),))
    monkeypatch.setattr(Keyring, "key_sets", (keys, *Keyring.key_sets[1:]))
    shop: Shop = request.getfixturevalue("shop")
    return shop


def test_whoever_has_a_longer_key_is_somebody_else(named: Shop) -> None:
    """In the columns of the table's rows; in an object that holds none of them, the same letters count."""
    longer = (f"{NAME}i", "i@example.org")
    named.at(-1.2)  # older than the collector's day of grace
    for number in (1, 2):
        named.lakefs.put(named.repo, "main", PREFIX + f"users-{number}.csv", csv(OTHERS[1], longer))
    named.lakefs.put(named.repo, "main", PREFIX + "users-3.csv", csv(OTHERS[2], longer, (NAME, MAIL)))
    named.lakefs.commit(named.repo, "main")
    named.at(0)
    run = prepared(named, *IMMEDIATE)
    before = run.look()
    run_all(run)
    after = run.look()
    assert after.bytes.residue == ()
    assert [s.rows for s in after.rows.states] == [0, 0, 0]
    compared = compare(before.baseline, after.baseline)
    assert (compared.equal, compared.lost) == (True, 0)
    main = heads(named)["main"]
    assert main[PREFIX + "users-1.csv"] == csv(OTHERS[1], longer)
    assert main[PREFIX + "users-3.csv"] == csv(OTHERS[2], longer)
    named.lakefs.put(named.repo, "main", "elsewhere/users-2.csv", csv(OTHERS[1], longer))
    named.lakefs.commit(named.repo, "main")
    assert run.look().bytes.residue


def test_deleting_on_main_and_collecting_leaves_the_person(shop: Shop) -> None:
    for name in (1, 3):
        shop.lakefs.put(shop.repo, "main", PREFIX + f"users-{name}.csv", csv(OTHERS[0]))
    shop.lakefs.commit(shop.repo, "main")
    shop.at(10)
    shop.lakefs.collect(shop.repo)
    # dev's head, the histories, and the commit that a deleted branch left
    assert len(shop.addresses(PERSON)) == 4


def test_deleting_everywhere_and_a_short_retention_of_main_leaves_the_lost_commit(shop: Shop) -> None:
    for branch, names in (("main", (1, 3)), ("dev", (1, 3, 4))):
        for name in names:
            shop.lakefs.put(shop.repo, branch, PREFIX + f"users-{name}.csv", csv(OTHERS[0]))
        shop.lakefs.commit(shop.repo, branch)
    zero = [{"branch_id": b, "retention_days": 0} for b in shop.repo.heads]
    shop.repo.rules = {"default_retention_days": 60, "branches": zero}
    shop.at(1)
    shop.lakefs.collect(shop.repo)
    assert len(shop.addresses(PERSON)) == 2  # its own object, and that of the commit below it


def run_all(run: Run) -> None:
    run.act(REWRITE)
    run.act(SET)
    assert run.act(AWAIT).waiting_until is not None
    run.at(0.1)
    run.shop.lakefs.collect(run.shop.repo)
    assert run.act(AWAIT).waiting_until is None
    run.act(RESTORE)


def test_the_planned_way_leaves_nothing_of_the_person_and_everything_of_others(shop: Shop) -> None:
    shown, rules = heads(shop), shop.repo.rules
    run = prepared(shop, *IMMEDIATE)
    before = run.look()
    assert {s.state: s.rows for s in before.rows.states} == {"branch dev": 3, "branch free": 0, "branch main": 2}
    assert {s.state: s.rows_other for s in before.baseline.states} == {"branch dev": 4, "branch main": 4}
    assert before.bytes.residue
    rewritten = run.act(REWRITE)
    assert rewritten.facts["rows_dropped"] == 5
    assert heads(shop) == without_person(shown)
    for branch in ("main", "dev"):
        made = shop.repo.commits[shop.repo.heads[branch]]
        assert made["metadata"] == {PLAN_MARK: run.plan.plan_id}
        assert made["parents"] == [shop.commits["third" if branch == "main" else "dev"]]
    # the metadata that an object had goes along
    assert shop.repo.tree("dev")[PREFIX + "users-4.csv"]["metadata"]["owner"] == "dev"
    assert shop.addresses(PERSON)
    run.act(SET)
    waited = run.act(AWAIT)
    assert waited.facts["left"] == 4
    assert not run.verify(AWAIT).ok
    run.at(0.1)
    gone = shop.lakefs.collect(shop.repo)
    assert shop.addresses(PERSON) == set()
    assert len(gone) == 4
    done = run.act(AWAIT)
    assert (done.facts["left"], done.facts["files_removed"]) == (0, 4)
    run.act(RESTORE)
    assert shop.repo.rules == rules
    after = run.look()
    assert after.bytes.clean
    assert after.rows.rows_left == 0
    kept = compare(before.baseline, after.baseline)
    assert (kept.lost, kept.equal) == (0, True)
    assert heads(shop) == without_person(shown)


def test_parquet_objects_are_rewritten_too(shop: Shop) -> None:
    tree = {f"{PREFIX}users-{n}.parquet": parquet(OTHERS[n], PERSON) for n in range(2)}
    for commit in shop.repo.commits.values():
        commit["tree"], commit["meta_range_id"] = {}, "empty"
    for path in (shop.root / "shop" / "data").iterdir():
        path.unlink()
    shop.at(-2)
    for path, data in tree.items():
        shop.lakefs.put(shop.repo, "main", path, data)
    shop.lakefs.commit(shop.repo, "main")
    shop.at(0)
    run = prepared(shop, *IMMEDIATE, format="parquet")
    run_all(run)
    assert shop.addresses(PERSON) == set()
    assert len(shop.addresses(OTHERS[0])) == 1
    assert run.look().bytes.clean


def test_a_repository_without_rules_gets_none_in_the_end(shop: Shop) -> None:
    # nothing is lost from sight: the commit of the deleted branch never was
    lost = shop.commits["gone"]
    address = shop.repo.commits.pop(lost)["tree"][PREFIX + "users-1.csv"]["physical_address"]
    (shop.root / address.removeprefix("local://")).unlink()
    shop.repo.rules = None
    run = prepared(shop, *IMMEDIATE)
    run_all(run)
    assert shop.addresses(PERSON) == set()
    assert shop.repo.rules is None


def test_waiting_says_what_keeps_the_objects_and_gives_up_in_the_end(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    run.act(REWRITE)
    waited = run.act(AWAIT)  # the rules are not lowered yet
    assert set(waited.facts["kept_by"]) <= set(shop.repo.commits)
    assert waited.facts["kept_by"]
    run.act(SET)
    shop.lakefs.branch(shop.repo, "back", shop.commits["second"])
    run.at(20)
    shop.lakefs.collect(shop.repo)
    with pytest.raises(RunError, match="active commit"):
        run.act(AWAIT)
    shop.lakefs.drop_branch(shop.repo, "back")
    with pytest.raises(RunError, match="no active commit references them"):
        run.act(AWAIT)
    shop.lakefs.collect(shop.repo)
    assert run.act(AWAIT).waiting_until is None


def test_a_commit_made_since_that_names_an_old_object_is_seen(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    run.act(REWRITE)
    run.act(SET)
    run.at(0.5)
    shop.lakefs.branch(shop.repo, "back", shop.commits["second"])
    shop.lakefs.put(shop.repo, "back", "x.txt", b"x")
    made = shop.lakefs.commit(shop.repo, "back")
    assert made in run.act(AWAIT).facts["kept_by"]


def test_a_collector_that_takes_too_much_is_no_success(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    before = run.look()
    run_all(run)
    (shop.root / shop.repo.tree("main")[PREFIX + "users-2.csv"]["physical_address"].removeprefix("local://")).unlink()
    with pytest.raises(PiiTracerError, match="cannot be read"):
        run.look()
    assert before.baseline.states


def test_what_lies_in_the_storage_and_lakefs_does_not_show_is_residue(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    run_all(run)
    (shop.root / "shop" / "data" / "forgotten").write_bytes(csv(PERSON))
    (residue,) = {r.file for r in run.look().bytes.residue}
    assert residue == "(storage) data/forgotten"


def test_a_storage_that_nobody_can_list_is_unverified(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    run_all(run)
    server = run.estate.lakefs[0].model_copy(update={"local_root": None})
    run.estate = run.estate.model_copy(update={"lakefs": (server,)})
    seen = run.look()
    assert not seen.bytes.residue
    assert not seen.bytes.clean
    assert "cannot list the storage" in seen.bytes.unverified[0]


# --- refusals ---


def test_foreign_changes_on_a_branch_stop_it_before_anything_is_written(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    shop.lakefs.put(shop.repo, "main", "others.txt", b"somebody's work")
    with pytest.raises(RunError, match="uncommitted changes of other users"):
        run.act(REWRITE)
    assert list(shop.repo.staging["main"]) == ["others.txt"]
    assert not shop.repo.staging["dev"]


def test_an_object_that_somebody_changed_is_left_as_it_is(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    shop.lakefs.put(shop.repo, "main", PREFIX + "users-3.csv", csv(*OTHERS))
    shop.lakefs.commit(shop.repo, "main")
    with pytest.raises(RunError, match="somebody changed an object"):
        run.act(REWRITE)
    assert shop.lakefs.bytes_of(shop.repo.tree("main")[PREFIX + "users-3.csv"]) == csv(*OTHERS)
    assert shop.repo.staging["main"] == {}


@pytest.mark.parametrize("status", [401, 403, 409, 412, 500])
def test_a_refused_commit_leaves_nothing_staged(shop: Shop, status: int) -> None:
    run = prepared(shop, *IMMEDIATE)
    shop.lakefs.faults = lambda method, path: status if method == "POST" and path.endswith("/commits") else None
    with pytest.raises(PiiTracerError, match=f"HTTP {status}"):
        run.act(REWRITE)
    assert all(not staged for staged in shop.repo.staging.values())
    shop.lakefs.faults = lambda method, path: None
    run.act(REWRITE)


def test_a_hook_that_refuses_and_a_protection_that_came_later(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    shop.lakefs.hook = lambda branch: branch != "main"
    with pytest.raises(PiiTracerError, match="HTTP 412"):
        run.act(REWRITE)
    assert run.probe(REWRITE) is Progress.PARTIAL  # dev is done
    shop.lakefs.hook = lambda branch: True
    shop.repo.protected = ["main"]
    with pytest.raises(PiiTracerError, match="HTTP 403"):
        run.act(REWRITE)
    shop.repo.protected = []
    assert run.act(REWRITE).facts["rows_dropped"] == 2


def test_rules_that_somebody_changed_are_not_overwritten(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    theirs: dict[str, Any] = {"default_retention_days": 5, "branches": []}
    shop.repo.rules = theirs
    with pytest.raises(RunError, match="somebody changed the retention rules"):
        run.act(SET)
    assert shop.repo.rules == theirs
    assert run.act(RESTORE).facts["left_alone"]
    assert shop.repo.rules == theirs


def test_a_repository_that_moved_is_refused(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    step = run.steps[SET]
    run.steps[SET] = step.model_copy(update={"parameters": {**step.parameters, "storage": "local://elsewhere"}})
    with pytest.raises(RunError, match="the storage of the repository differs"):
        run.act(SET)


# --- killed and resumed ---


@pytest.mark.parametrize("calls", range(1, 8))
def test_killed_anywhere_in_the_rewrite_and_resumed(shop: Shop, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    shown = heads(shop)
    run = prepared(shop, *IMMEDIATE)
    before = run.look()
    with pytest.raises(Killed), killed_after(monkeypatch, calls):
        run.act(REWRITE)
    assert run.probe(REWRITE) is (Progress.DONE if calls == 7 else Progress.PARTIAL)
    if calls < 7:
        run.act(REWRITE)
    assert heads(shop) == without_person(shown)
    assert [len(staged) for staged in shop.repo.staging.values()] == [0, 0, 0]
    # no commit was made twice
    assert sum(c["metadata"].get(PLAN_MARK) == run.plan.plan_id for c in shop.repo.commits.values()) == 2
    after = run.look()
    assert compare(before.baseline, after.baseline).equal


@pytest.mark.parametrize("action", [SET, RESTORE])
def test_killed_after_the_rules_were_set(shop: Shop, monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    run = prepared(shop, *IMMEDIATE)
    if action == RESTORE:
        run.act(SET)
    assert run.probe(action) is Progress.NOT_STARTED
    with pytest.raises(Killed), killed_after(monkeypatch, 1):
        run.act(action)
    assert run.probe(action) is Progress.DONE
    run.act(action)


def test_the_date_is_the_servers_own(shop: Shop) -> None:
    """Under `retain` the objects go on the day that was planned, and not before."""
    run = prepared(shop)
    run.act(REWRITE)
    run.act(SET)
    until = run.steps[AWAIT].parameters["until"]
    days = (type(NOW).fromisoformat(until.replace("Z", "+00:00")) - NOW) / timedelta(days=1)
    assert days > 20
    run.at(days - 0.5)
    shop.lakefs.collect(shop.repo)
    assert shop.addresses(PERSON)
    assert run.act(AWAIT).facts["kept_by"]
    run.at(days + 0.1)
    shop.lakefs.collect(shop.repo)
    assert shop.addresses(PERSON) == set()
    assert run.act(AWAIT).waiting_until is None


def test_an_object_that_nothing_names_is_waited_for_too(shop: Shop) -> None:
    (shop.root / "shop" / "data" / "left").write_bytes(csv(PERSON))
    run = prepared(shop, *IMMEDIATE)
    assert {"address": "local://shop/data/left", "path": None, "ref": None} in run.steps[AWAIT].parameters["objects"]
    run.act(REWRITE)
    run.act(SET)
    run.at(0.1)
    gone = shop.lakefs.collect(shop.repo)
    (shop.root / "shop" / "data" / "left").write_bytes(csv(PERSON))  # as if the sweep had missed it
    assert "local://shop/data/left" in gone
    assert run.act(AWAIT).facts["left"] == 1
    shop.lakefs.collect(shop.repo)
    assert run.act(AWAIT).facts["left"] == 0


def test_a_wrong_folder_for_the_storage_does_not_hide_what_lakefs_still_reads(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    run.act(REWRITE)
    (shop.base / "empty" / "shop").mkdir(parents=True)
    server = run.estate.lakefs[0].model_copy(update={"local_root": "empty"})
    run.estate = run.estate.model_copy(update={"lakefs": (server,)})
    assert not run.verify(AWAIT).ok
    assert run.look().bytes.residue


def test_staged_work_that_comes_in_between_is_not_committed_along(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run = prepared(shop, *IMMEDIATE)
    real, count = LakefsClient.upload, 0

    def upload(self: LakefsClient, *args: Any) -> None:
        nonlocal count
        real(self, *args)
        count += 1
        if count == 1:
            shop.lakefs.put(shop.repo, "dev", "others.txt", b"somebody's work")

    monkeypatch.setattr(LakefsClient, "upload", upload)
    with pytest.raises(RunError, match="uncommitted changes of other users"):
        run.act(REWRITE)
    assert list(shop.repo.staging["dev"]) == ["others.txt"]
    assert shop.repo.heads["dev"] == shop.commits["dev"]


def test_an_object_that_changes_between_reading_and_writing_is_not_overwritten(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepared(shop, *IMMEDIATE)
    real = LakefsClient.read

    def read(self: LakefsClient, repository: str, ref: str, path: str) -> bytes | None:
        data = real(self, repository, ref, path)
        shop.lakefs.put(shop.repo, "dev", PREFIX + "users-1.csv", csv(*OTHERS))
        return data

    monkeypatch.setattr(LakefsClient, "read", read)
    with pytest.raises(PiiTracerError, match="HTTP 412"):
        run.act(REWRITE)
    assert shop.lakefs.bytes_of(shop.repo.tree("dev")[PREFIX + "users-1.csv"]) == csv(*OTHERS)


def test_a_plan_that_is_applied_late_waits_longer_before_it_gives_up(shop: Shop) -> None:
    run = prepared(shop)
    parameters = run.steps[AWAIT].parameters
    give_up = type(NOW).fromisoformat(parameters["give_up"].replace("Z", "+00:00"))
    run.at(10)
    run.act(REWRITE)
    run.act(SET)
    run.at((give_up - NOW) / timedelta(days=1) + 1)
    assert run.act(AWAIT).waiting_until == run.now + timedelta(hours=6)
    run.at((give_up - NOW) / timedelta(days=1) + 11)
    with pytest.raises(RunError, match="no active commit references them"):
        run.act(AWAIT)


def test_what_keeps_the_objects_is_not_guessed_where_the_server_does_not_tell(shop: Shop) -> None:
    run = prepared(shop, *IMMEDIATE)
    run.act(REWRITE)
    run.act(SET)
    shop.lakefs.faults = lambda method, path: 403 if path.endswith("/prepare_commits") else None
    assert run.act(AWAIT).facts["kept_by"] is None
    run.at(20)
    with pytest.raises(RunError, match="the reason is unknown"):
        run.act(AWAIT)
