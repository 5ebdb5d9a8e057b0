"""Two real NameNodes behind one nameservice: plans and runs go on when the other one becomes active."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pii_tracer.common.http import NoAnswer
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs import name_nodes, security
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.model.errors import ExitCode
from tests.commands_apart import run_apart
from tests.hdfs.killed_run import GONE
from tests.hdfs.nameservice import Nameservice, nameservice
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, Shop, csv
from tests.hdfs.tables import delta, files_of, rows
from tests.hdfssupport import SUPERUSER

pytestmark = [pytest.mark.slow]

AS_SUPERUSER = {"HADOOP_USER_NAME": SUPERUSER}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nameservice]:
    with nameservice(tmp_path_factory.mktemp("nameservice")) as found:
        yield found


@pytest.fixture
def shop(service: Nameservice, tmp_path: Path) -> Shop:
    shop = Shop(service, tmp_path, service.folder())
    shop.no_trash()
    return shop


def facts(client: WebHdfs, *paths: str) -> list[Any]:
    """What plans and journals keep of files."""
    return [(client.status(path), client.checksum(path), client.rights(path), client.is_open(path)) for path in paths]


def test_what_plans_keep_of_files_is_the_same_at_both_name_nodes(shop: Shop, service: Nameservice) -> None:
    paths = [shop.put("a/x.csv", csv(PERSON)), shop.put("b/y.csv", csv(*OTHERS))]
    service.ask(shop.root, "ALLOWSNAPSHOT")
    service.ask(shop.root, "CREATESNAPSHOT", snapshotname="s1")
    snapshot = f"{shop.root}/.snapshot/s1"
    before = (facts(service.at(service.active), *paths), service.client().status(snapshot).mark)
    old = service.active
    service.fail_over()
    assert old != service.active
    with pytest.raises(StoreError, match="StandbyException"):
        service.at(old).status(paths[0])
    assert (facts(service.at(service.active), *paths), service.client().status(snapshot).mark) == before
    assert facts(service.client(), *paths) == before[0], "the client finds the active one"


@pytest.mark.parametrize("dies", [False, True])
def test_a_run_goes_on_while_the_other_name_node_becomes_active(
    shop: Shop, service: Nameservice, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """dies: the active one is killed, and a while passes in which none is active."""
    paths = [shop.export("csv", f"{n}.csv", csv(OTHERS[n], PERSON)) for n in range(3)]
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    service.fail_over()
    real, asked, old = WebHdfs.rename, list[str](), service.active
    later = Thread(target=service.fail_over)

    def rename(self: WebHdfs, path: str, to: str, *, overwrite: bool) -> None:
        asked.append(to)
        if len(asked) == 2 and dies:
            service.kill_active()
            later.start()
        elif len(asked) == 2:
            service.fail_over()
        real(self, path, to, overwrite=overwrite)

    monkeypatch.setattr(WebHdfs, "rename", rename)
    code, result = shop.apply()
    if dies:
        later.join()
        service.start(old)
    assert old != service.active
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (3, 0)
    assert [shop.read(path) for path in paths] == [csv(OTHERS[n]) for n in range(3)]
    assert shop.verify() == 0


def test_a_rename_without_an_answer_is_not_repeated_and_the_next_run_finds_it_done(
    shop: Shop, service: Nameservice, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [shop.export("csv", f"{n}.csv", csv(OTHERS[n], PERSON)) for n in range(2)]
    assert shop.plan()[0] == 0
    assert shop.approve() == 0
    real, renames = security.ask, list[str]()

    def answerless(url: str, **more: Any) -> bytes:
        answer = real(url, **more)
        if "op=RENAME" in url:
            renames.append(url)
            raise NoAnswer("does not answer: RemoteDisconnected")
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(security, "ask", answerless)
        assert shop.apply()[0] == ExitCode.PARTIAL
    assert len(renames) == 1, "neither repeated nor asked of the other NameNode"
    assert [MAIL.encode() in shop.read(path) for path in paths] == [False, True]
    code, result = shop.apply()
    assert (code, result["state"], result["rows_erased"], result["bystander_rows_lost"]) == (0, "complete", 2, 0)
    assert [shop.read(path) for path in paths] == [csv(OTHERS[n]) for n in range(2)]


def test_an_hdfs_without_an_active_name_node_is_a_gap_that_says_so(
    shop: Shop, service: Nameservice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_nodes, "_PAUSES", (0.0,))
    shop.export("csv", "a.csv", csv(PERSON))
    shop.write()
    old = service.active
    service._admin("-transitionToStandby", old)
    try:
        plan = shop.plan()[1]
    finally:
        service._admin("-transitionToActive", old)
    gaps = [gap for gap in plan["gaps"] if gap["kind"] == "hdfs_unread"]
    assert gaps
    assert all("haadmin" in gap["reason"] for gap in gaps)


def test_a_table_whose_nameservice_no_engine_knows_is_a_gap(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    delta(shop, "table", [OTHERS[0], PERSON])
    shop.name_node = {"rpc": []}
    gaps = [gap for gap in shop.plan()[1]["gaps"] if gap["kind"] == "hdfs_place"]
    assert ["add `rpc`" in gap["reason"] for gap in gaps] == [True]
    shop.name_node = {}
    assert [gap["kind"] for gap in shop.plan()[1]["gaps"] if gap["waiver"] is None] == []


@pytest.mark.spark
@pytest.mark.e2e
def test_a_killed_run_is_resumed_at_the_other_name_node_with_spark(shop: Shop, service: Nameservice) -> None:
    """Another one is active than at the plan; then the run and that one are killed in the middle."""
    paths = [shop.export("csv", f"{n}.csv", csv(OTHERS[n], PERSON)) for n in range(3)]
    delta(shop, "table", [OTHERS[0], PERSON], OTHERS[1:])
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    service.fail_over()
    run = ["apply", str(shop.plan_file), "--trusted", str(shop.base / "approvers.yaml")]
    run += ["--result", str(shop.base / "result.json")]
    assert killed(shop, 2, *run) == GONE
    assert sorted(MAIL.encode() in shop.read(path) for path in paths) != [False, False, False]
    service.kill_active()
    service.fail_over()
    assert apart(shop, *run) == 0
    result = json.loads((shop.base / "result.json").read_text())
    assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (4, 0)
    assert [shop.read(path) for path in paths] == [csv(OTHERS[n]) for n in range(3)]
    assert sorted(row["uid"] for row in rows(shop, "table")) == sorted(uid for uid, _ in OTHERS)
    for path in files_of(shop, shop.root):
        assert MAIL.encode() not in shop.read(path)
    assert apart(shop, "verify", str(shop.plan_file)) == 0


def apart(shop: Shop, *words: str) -> int:
    """The exit code of a command, in a process with a Spark of its own."""
    where = ["--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.base / "state")]
    return run_apart([*words, *where], shop.base / "apart.log", more=AS_SUPERUSER)


def killed(shop: Shop, writes: int, *words: str) -> int:
    """The exit code of a command whose process is gone after so many requests that write."""
    where = ["--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.base / "state")]
    whole = [sys.executable, "-m", "tests.hdfs.killed_run", str(writes), *words, *where]
    done = subprocess.run(whole, env={**os.environ, **AS_SUPERUSER}, timeout=900, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    return done.returncode
