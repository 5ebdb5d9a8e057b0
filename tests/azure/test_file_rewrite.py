"""Bare files in a data lake: the person goes, and the owner, the access list and everything else of a file stays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lake.stores.azure import file_rewrite, login
from pii_tracer.lake.stores.azure.client import patiently
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode, RunError
from tests.azure.blob_service import BlobService
from tests.azure.blob_state import Refused, State
from tests.azure.dfs_service import DfsService
from tests.azure.path_state import Paths
from tests.azure.shop import STORE, Shop
from tests.gcs.running import Run
from tests.hdfs.running import Killed
from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER, csv, parquet

OWNER, GROUP, READER, STRANGER = (f"{n}{n}{n}{n}0000-0000-0000-0000-000000000000" for n in "1234")
ACL = f"user::rw-,user:{READER}:r--,group::r--,mask::r--,other::---"
SET: dict[str, Any] = {
    "owner": OWNER,
    "group": GROUP,
    "acl": ACL,
    "metadata": {"job": "nightly"},
    "headers": {"Content-Type": "text/plain", "Content-Language": "de"},
    "context": "tenant 7",
    "expires": datetime(2099, 1, 1, tzinfo=timezone.utc),
    "tier": "Cool",
}


@pytest.fixture
def shop(azure: BlobService, dfs: DfsService, tmp_path: Path) -> Shop:
    """A folder whose default access list lets a stranger read what is made in it."""
    made = Shop.on(azure, tmp_path, hierarchical=True, page=99)
    made.dfs = dfs
    folder = Paths(azure.account, made.container).create("a", folder=True)
    folder.default_acl = f"user::rwx,user:{STRANGER}:rwx,group::rwx,mask::rwx,other::r--"
    return made


def state(shop: Shop, path: str) -> State:
    found = shop.blob(path).current
    assert found is not None
    return found


def kept(one: State) -> dict[str, Any]:
    """What has to be as it was; without the plan's mark."""
    found = {name: getattr(one, name) for name in (*SET, "scope")}
    return found | {"metadata": {n: v for n, v in one.metadata.items() if n != "pii_tracer_plan"}}


def names(shop: Shop) -> list[str]:
    return sorted(name for name, blob in shop.container.blobs.items() if blob.current and "/" in name)


def lines(*people: tuple[str, str]) -> bytes:
    return b"".join(json.dumps({"uid": uid, "mail": mail}).encode() + b"\n" for uid, mail in people)


def planned(shop: Shop) -> None:
    assert shop.plan()[0] == 0
    assert shop.approve() == 0


def test_a_plain_overwrite_loses_who_may_read_and_a_plain_rename_leaves_the_person(shop: Shop) -> None:
    shop.put("a/x.csv", csv(PERSON), **SET)
    shop.put("a/x.csv", csv(OTHERS[0]))
    assert (state(shop, "a/x.csv").owner, state(shop, "a/x.csv").acl) != (OWNER, ACL)
    assert shop.service is not None
    shop.service.account.soft_delete_days = 7
    shop.put("a/x.csv", csv(PERSON))
    paths = Paths(shop.service.account, shop.container)
    paths.create("a/y.csv", folder=False)
    assert STRANGER in state(shop, "a/y.csv").acl, "a new file lets in whom its folder says"
    paths.rename("a/y.csv", "a/x.csv")
    assert [MAIL.encode() in data for data in shop.kept()] == [True], "the file that was renamed over is soft-deleted"


@pytest.mark.parametrize(("ending", "made"), [("csv", csv), ("json", lines), ("parquet", parquet)])
def test_the_person_goes_and_the_file_stays_whose_it_was(
    ending: str, made: Callable[..., bytes], shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    visible: list[tuple[str, str]] = []
    flush = Paths.flush

    def seen(self: Paths, name: str, position: int) -> State:
        found = flush(self, name, position)
        visible.append((found.owner, found.acl))
        return found

    monkeypatch.setattr(Paths, "flush", seen)
    shop.export("a", f"x.{ending}", made(OTHERS[0], PERSON, OTHERS[1]), **SET)
    before = kept(state(shop, f"a/x.{ending}"))
    planned(shop)
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert result["bystander_rows_lost"] == 0
    assert visible == [(OWNER, ACL)], "when its bytes can be read, nobody else can read them"
    assert names(shop) == [f"a/x.{ending}"]
    assert kept(state(shop, f"a/x.{ending}")) == before
    assert shop.read(f"a/x.{ending}") == made(*OTHERS[:2]) or ending == "parquet"
    assert MAIL.encode() not in shop.read(f"a/x.{ending}")
    assert shop.kept() == []


def test_what_soft_delete_keeps_of_the_old_file_is_waited_for(azure: BlobService, shop: Shop) -> None:
    azure.account.soft_delete_days = 7
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    planned(shop)
    code, result = shop.apply()
    assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", [])
    assert [USER.encode() in data for data in shop.kept()] == [True]
    azure.account.days = 8
    assert shop.verify() == 0
    assert shop.kept() == []


def rewriting(shop: Shop, kind: str = "csv") -> Run:
    """The step that writes again what is live in the folder now."""
    shop.write()
    found = [one for one in shop.store.live_objects("a/") if not one.key.endswith("/")]
    versions = [
        {
            **{name: getattr(one, name) for name in ("key", "version_id", "mark", "size")},
            "sha256": hashlib.sha256(shop.store.read_version(one, 0, one.size)).hexdigest(),
        }
        for one in found
    ]
    parameters = {"location": f"{STORE}/a", "plan_id": "plan-1", "format": kind, "versions": versions}
    return Run(shop, Action.OBJECT_REWRITE, parameters)  # type: ignore[arg-type]


def at_request(monkeypatch: pytest.MonkeyPatch, number: int, before: object = None, after: object = None) -> None:
    """Do something before or after one of the six requests that write: create, allow, append, flush, set tier, rename."""
    done = 0

    def asked(ask: Callable[[], Any]) -> Any:
        nonlocal done
        done += 1
        if done == number and callable(before):
            before()
        answer = patiently(ask)
        if done == number and callable(after):
            after()
        return answer

    monkeypatch.setattr(file_rewrite, "patiently", asked)


def killed() -> None:
    raise Killed


def killed_at(request: int, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A step that was killed after one of its requests."""
    run = rewriting(shop)
    with monkeypatch.context() as patched:
        at_request(patched, request, after=killed)
        with pytest.raises(Killed):
            run.run()
    return run


@pytest.mark.parametrize("moment", range(1, 7))
def test_a_step_that_is_killed_anywhere_is_taken_up_again(
    moment: int, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    before, run = kept(state(shop, "a/x.csv")), rewriting(shop)
    with monkeypatch.context() as patched:
        at_request(patched, moment, after=killed)
        with pytest.raises(Killed):
            run.run()
    renamed = moment == 6
    assert len(names(shop)) == (1 if renamed else 2)
    assert (run.seen().ok, "an interrupted rewrite left a temporary file" in run.seen().findings) == (
        renamed,
        not renamed,
    )
    run.check()
    assert run.run()["files_rewritten"] == 1
    assert run.seen().ok
    assert names(shop) == ["a/x.csv"]
    assert (shop.read("a/x.csv"), kept(state(shop, "a/x.csv"))) == (csv(OTHERS[0]), before)


@pytest.mark.parametrize("number", [1, 3, 6])
def test_who_writes_meanwhile_keeps_what_they_wrote(number: int, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    run = rewriting(shop)
    at_request(monkeypatch, number, before=lambda: shop.put("a/x.csv", csv(OTHERS[3])))
    with pytest.raises(RunError, match="somebody changed an object"):
        run.run()
    assert (names(shop), shop.read("a/x.csv")) == (["a/x.csv"], csv(OTHERS[3]))


def test_an_access_list_that_is_changed_meanwhile_is_not_undone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    run, closed = rewriting(shop), "user::rw-,group::---,other::---"
    at_request(monkeypatch, 3, before=lambda: setattr(state(shop, "a/x.csv"), "acl", closed))
    with pytest.raises(RunError, match="somebody changed an object"):
        run.run()
    assert (names(shop), state(shop, "a/x.csv").acl) == (["a/x.csv"], closed)
    assert MAIL.encode() in shop.read("a/x.csv")


def test_what_is_left_over_beside_a_file_that_changed_goes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    run = killed_at(4, shop, monkeypatch)
    (left, _) = names(shop)
    assert (left.startswith("a/_pii_tracer_"), shop.read(left)) == (True, csv(OTHERS[0]))
    shop.put("a/x.csv", csv(OTHERS[3]))
    with pytest.raises(RunError, match="somebody changed an object"):
        run.check()
    assert names(shop) == ["a/x.csv"]


@pytest.mark.parametrize("going_on", [Run.check, Run.run])
def test_nothing_is_left_beside_any_file_where_one_changed(
    going_on: Callable[[Run], object], shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0.csv", "1.csv"):
        shop.export("a", name, csv(OTHERS[0], PERSON))
    run = killed_at(9, shop, monkeypatch)  # the second file's bytes are there
    assert len(names(shop)) == 3
    shop.put("a/0.csv", csv(OTHERS[3]))
    with pytest.raises(RunError, match="somebody changed an object"):
        going_on(run)
    assert names(shop) == ["a/0.csv", "a/1.csv"]


def test_a_later_plan_says_which_one_left_a_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    killed_at(4, shop, monkeypatch)
    left, _ = names(shop)
    (gap,) = [gap for gap in shop.plan()[1]["gaps"] if gap["waiver"] is None]
    assert gap["kind"] == "object_place"
    assert f"plan plan-1 left {left} behind when it was killed: resume its run, or delete that file" in gap["reason"]


def test_a_new_file_that_does_not_get_everything_is_never_filled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that does not set the list, as an example of what nobody foresaw."""
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    run, filled = rewriting(shop), list[str]()
    monkeypatch.setattr(Paths, "append", lambda self, name, *more: filled.append(name))
    monkeypatch.setattr("tests.azure.dfs_service.set_access", lambda *_: None)
    with pytest.raises(RunError, match="the new file did not get all these properties"):
        run.run()
    assert (filled, names(shop)) == ([], ["a/x.csv"])
    assert MAIL.encode() in shop.read("a/x.csv")


def test_a_file_of_somebody_else_under_the_new_name_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    run = killed_at(1, shop, monkeypatch)
    (left, _) = names(shop)
    shop.put(left, b"hers")
    with pytest.raises(RunError, match="somebody changed an object"):
        run.run()
    assert (shop.read(left), MAIL.encode() in shop.read("a/x.csv")) == (b"hers", True)


def test_a_later_plan_erases_in_a_file_that_an_earlier_one_rewrote(shop: Shop) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], OTHERS[1], PERSON), **SET)
    before = kept(state(shop, "a/x.csv"))
    assert rewriting(shop).run()["files_rewritten"] == 1
    again = state(shop, "a/x.csv")  # a job that keeps the metadata brings the person back
    again.data, again.etag = csv(OTHERS[0], PERSON), '"0xAGAIN"'
    run = rewriting(shop)
    run.parameters["plan_id"] = "plan-2"
    assert run.run()["files_rewritten"] == 1
    assert run.seen().ok
    assert (shop.read("a/x.csv"), kept(state(shop, "a/x.csv"))) == (csv(OTHERS[0]), before)


def test_what_a_rename_did_not_bring_along_is_an_error(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that loses the list on the way, as an example of what nobody foresaw."""
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    run, rename = rewriting(shop), Paths.rename

    def lossy(self: Paths, source: str, name: str) -> None:
        rename(self, source, name)
        self.state(name).acl = "user::rw-,group::rw-,other::r--"

    monkeypatch.setattr(Paths, "rename", lossy)
    with pytest.raises(RunError, match="its owner, access list or a different property changed"):
        run.run()


def test_bytes_that_arrive_otherwise_never_replace_a_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    run, append = rewriting(shop), Paths.append
    monkeypatch.setattr(Paths, "append", lambda self, name, at, data: append(self, name, at, b"#" * len(data)))
    with pytest.raises(RunError, match="OtherBytes"):
        run.run()
    assert (names(shop), shop.read("a/x.csv")) == (["a/x.csv"], csv(OTHERS[0], PERSON))


@pytest.mark.parametrize("number", [1, 6])
def test_a_request_that_was_done_and_called_too_busy_is_no_change_of_somebody_else(
    number: int, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    before, run, done = kept(state(shop, "a/x.csv")), rewriting(shop), list[int]()

    def asked(ask: Callable[[], Any]) -> Any:
        done.append(1)
        if len(done) == number:
            ask()
        return patiently(ask)

    monkeypatch.setattr(file_rewrite, "patiently", asked)
    assert run.run()["files_rewritten"] == 1
    assert (names(shop), shop.read("a/x.csv"), kept(state(shop, "a/x.csv"))) == (["a/x.csv"], csv(OTHERS[0]), before)


def test_a_file_that_one_endpoint_shows_and_the_other_does_not_is_no_endless_task(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    run, asked = rewriting(shop), list[str]()
    with monkeypatch.context() as patched:
        at_request(patched, 4, after=killed)
        with pytest.raises(Killed):
            run.run()
    (live,) = (one for one in shop.store.live_objects("a/x.csv"))

    def gone(self: Paths, name: str, *, recursive: bool) -> None:
        asked.append(name)
        raise Refused(404, "PathNotFound")

    monkeypatch.setattr(Paths, "delete", gone)
    with pytest.raises(StoreError, match="an unfinished file cannot be removed") as told:
        shop.store.discard_unfinished(live.key, "plan-1")
    assert ("dfs_endpoint" in str(told.value.todo), 1 < len(asked) < 10) == (True, True)


def held(shop: Shop) -> str:
    """The reason of the only gap, which is one of what the store holds."""
    (gap,) = [gap for gap in shop.plan()[1]["gaps"] if gap["waiver"] is None]
    assert gap["kind"] == "object_held"
    return str(gap["reason"])


def test_what_cannot_be_kept_is_a_gap_that_says_why(shop: Shop) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    one = state(shop, "a/x.csv")
    one.scope = "hers"
    assert "an encryption scope that is not its container's" in held(shop)
    shop.container.scope = "hers"
    assert shop.gaps() == []
    shop.snapshot("a/x.csv")
    assert "snapshots" in held(shop)
    shop.blob("a/x.csv").past.clear()
    shop.blob("a/x.csv").lease = "somebody"
    assert "an active lease" in held(shop)
    shop.blob("a/x.csv").lease, shop.container.policy = None, True
    assert "a retention policy of the container" in held(shop)
    shop.container.policy, shop.dfs = False, None
    assert "the address of the DFS service is not known (set `dfs_endpoint`)" in held(shop)


def test_a_signature_sets_no_access_list(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    (live,) = (one for one in shop.store.live_objects("a/") if not one.key.endswith("/"))
    monkeypatch.delenv(login.KEY)
    monkeypatch.setenv(login.SIGNATURE, "?sv=1&sig=x")
    signed = shop.store
    vars(signed)["hierarchical"] = True  # the stand-in takes no signatures
    assert "which a signature cannot set" in str(signed.cannot_keep(live))


def test_a_percent_sign_in_a_path_is_a_gap(shop: Shop) -> None:
    shop.export("a", "x%41.csv", csv(OTHERS[0], PERSON))
    assert "a percent sign" in held(shop)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda shop: None, ""),
        (lambda shop: setattr(shop.container, "scope", "$account-encryption-key"), ""),
        (lambda shop: setattr(shop.container, "scope", "hers"), "no encryption scope, and a new file would get its"),
        (lambda shop: state(shop, "a/x.csv").tags.update(team="n"), "index tags"),
    ],
)
def test_what_a_new_file_could_not_have_is_known_before(
    change: Callable[[Shop], object], lost: str, shop: Shop
) -> None:
    shop.put("a/x.csv", csv(OTHERS[0], PERSON))
    change(shop)
    (live,) = shop.store.live_objects("a/x.csv")
    reasons = shop.store.cannot_keep(live)
    assert (len(reasons), lost in "".join(reasons)) == (bool(lost), True)


@pytest.mark.parametrize(("letters", "fits"), [(140, True), (190, False)])
def test_a_path_beside_which_no_other_fits_is_a_gap(letters: int, fits: bool, shop: Shop) -> None:
    key = "/".join(("a", *["d" * 200] * 4, "e" * letters, "x.csv"))
    shop.put(key, csv(OTHERS[0], PERSON))
    (live,) = (one for one in shop.store.live_objects(key) if not one.key.endswith("/"))
    assert [why for why in shop.store.cannot_keep(live) if "a path so long" in why] == (
        [] if fits else ["a path so long that a temporary file cannot have a name"]
    )
    if fits:
        assert shop.store.replace(live, csv(OTHERS[0]), "plan-1").size == len(csv(OTHERS[0]))
    else:
        with pytest.raises(StoreError, match="a path so long"):
            shop.store.replace(live, csv(OTHERS[0]), "plan-1")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda shop: shop.snapshot("a/x.csv"), "snapshots"),
        (lambda shop: setattr(shop.blob("a/x.csv"), "lease", "somebody"), "an active lease"),
        (lambda shop: setattr(shop.container, "policy", True), "a retention policy"),
        (lambda shop: setattr(state(shop, "a/x.csv"), "scope", "hers"), "an encryption scope"),
    ],
)
def test_what_came_after_the_plan_stops_the_step(change: Callable[[Shop], object], why: str, shop: Shop) -> None:
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON))
    run = rewriting(shop)
    change(shop)
    with pytest.raises(RunError, match=why):
        run.run()
    assert (names(shop), MAIL.encode() in shop.read("a/x.csv")) == (["a/x.csv"], True)


def test_a_lease_that_is_taken_at_the_last_moment_is_not_broken(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service would break it, and the writer would find another file."""
    shop.export("a", "x.csv", csv(OTHERS[0], PERSON), **SET)
    run = rewriting(shop)
    at_request(monkeypatch, 5, after=lambda: setattr(shop.blob("a/x.csv"), "lease", "somebody"))
    with pytest.raises(RunError, match="somebody changed an object"):
        run.run()
    assert (names(shop), shop.blob("a/x.csv").lease) == (["a/x.csv"], "somebody")


def test_a_file_without_a_row_is_left_where_the_person_was_alone(shop: Shop) -> None:
    shop.export("a", "x.json", lines(PERSON), **SET)
    before, run = kept(state(shop, "a/x.json")), rewriting(shop, "json")
    assert run.run()["files_rewritten"] == 1
    assert (shop.read("a/x.json"), kept(state(shop, "a/x.json"))) == (b"", before)
