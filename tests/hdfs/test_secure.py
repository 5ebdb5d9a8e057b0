"""The whole path in a real HDFS as banks run it: a KDC, Kerberos, block tokens, and TLS alone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.common.kerberos import NoTicket, seconds_left
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.security import Security
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.model.errors import ExitCode
from tests.certificates import Authority
from tests.commands_apart import run_apart
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, Shop, csv, parquet
from tests.hdfs.tables import deleted, delta, files_of, put_all
from tests.kerberossupport import centre, environment, java_options, needs_kerberos, principal
from tests.leaks import Person, leaks
from tests.securehdfs import SecureHdfs, secure_cluster

pytestmark = [pytest.mark.nightly, needs_kerberos]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureHdfs]:
    """One for all tests here, which have a ticket of its superuser."""
    folder = tmp_path_factory.mktemp("secure")
    with (
        centre(folder / "kdc") as kdc,
        environment(kdc.client("superuser")),
        secure_cluster(folder, kdc, Authority.made(folder)) as running,
    ):
        yield running


@pytest.fixture
def shop(cluster: SecureHdfs, tmp_path: Path) -> Shop:
    shop = Shop(cluster, tmp_path, cluster.folder())
    shop.no_trash()
    return shop


def test_the_person_leaves_every_place_and_nobody_else_does(shop: Shop) -> None:
    trash = f"/user/ann/.Trash/Current{shop.root}"
    path = shop.export("parquet", "day=1/a.parquet", parquet(OTHERS[0], PERSON, OTHERS[1]))
    beside = shop.export("csv", "b.csv", csv(OTHERS[2], PERSON))
    shop.hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname="s1")
    shop.hdfs.put(f"{trash}/old.csv", csv(PERSON, OTHERS[3]))
    shop.deletable = [{"path": f"{shop.root}/.snapshot/s1", "owner": "Ann", "reason": "nobody needs it"}]
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"], result["rows_erased"]) == (0, "complete", 2)
    assert (result["residue"], result["unverified"], result["bystander_rows_lost"]) == ([], [], 0)
    assert shop.read(path) == parquet(*OTHERS[:2])
    assert shop.read(beside) == csv(OTHERS[2])
    assert list(shop.hdfs.client().entries(trash)) == []
    assert shop.verify() == 0
    state = shop.base / "state"
    assert leaks(Person((MAIL, USER)), [state]) == []
    written = b"".join(file.read_bytes() for file in (state, shop.base) for file in file.rglob("*") if file.is_file())
    assert not any(word in written for word in (b"delegation=", b"Negotiate", b"hadoop.auth"))


@contextmanager
def ticket_gone_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> Iterator[None]:
    """Neither cache nor keytab has a ticket from then on."""
    real, count = WebHdfs._asked, 0

    def counted(self: WebHdfs, what: str, path: str, method: str, url: str, **more: Any) -> bytes:
        nonlocal count
        answer = real(self, what, path, method, url, **more)
        count += method != "GET" and "noredirect" not in url
        if count == writes:
            monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere/cache")
            monkeypatch.setenv("KRB5_CLIENT_KTNAME", "/nowhere/keytab")
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(WebHdfs, "_asked", counted)
        yield
    monkeypatch.undo()


def test_a_ticket_that_ends_in_the_middle_stops_a_run_that_is_then_resumed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [shop.export("csv", f"{n}.csv", csv(OTHERS[n], PERSON)) for n in range(3)]
    assert shop.plan()[0] == 0
    shop.approve()
    with ticket_gone_after(monkeypatch, 4):
        code, result = shop.apply()
    assert code == ExitCode.PARTIAL
    assert result.get("state") != "complete"
    said = "".join(capsys.readouterr())
    assert f"kinit {principal('pii')}" in said
    assert [MAIL.encode() in shop.read(path) for path in paths] == [False, False, True]
    code, result = shop.apply()
    assert (code, result["state"], result["rows_erased"]) == (0, "complete", 3)
    assert result["bystander_rows_lost"] == 0
    assert [shop.read(path) for path in paths] == [csv(OTHERS[n]) for n in range(3)]


class Lake(Shop):
    """A shop whose commands run in another process, with a ticket and no keytab. hadoop: what tells Spark and
    delta-rs of the cluster."""

    hadoop: Mapping[str, str] = {}

    def cli(self, *words: str) -> int:
        where = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        return run_apart([*words, *where], self.base / "apart.log", more=self.hadoop)


def test_the_person_leaves_a_delta_table_and_nobody_else_does(cluster: SecureHdfs, tmp_path: Path) -> None:
    lake = Lake(cluster, tmp_path, cluster.folder())
    lake.no_trash()
    table = delta(lake, "t", [OTHERS[0], PERSON], OTHERS[1:], put=False)
    deleted(lake, "t", USER)
    put_all(lake, lake.base / "made" / "t", "t")
    cluster.kdc.kinit("lake", "pii")
    with environment(cluster.kdc.client("lake", keytab=False)):
        lake.hadoop = {"HADOOP_CONF_DIR": str(cluster.conf), "JAVA_TOOL_OPTIONS": " ".join(java_options(cluster.kdc))}
        assert lake.plan()[0] == 0
        assert lake.approve() == 0
        before, lake.hadoop = files_of(lake, table), {}
        code, result = lake.apply()
        assert code == ExitCode.PARTIAL
        said = (lake.base / "apart.log").read_text()
        assert "Spark cannot access HDFS: AccessControlException" in said
        assert "HADOOP_CONF_DIR" in said
        assert files_of(lake, table) == before
        lake.hadoop = {"HADOOP_CONF_DIR": str(cluster.conf), "JAVA_TOOL_OPTIONS": " ".join(java_options(cluster.kdc))}
        code, result = lake.apply()
        assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
        assert result["bystander_rows_lost"] == 0
        assert lake.verify() == 0
    assert [path for path in files_of(lake, table) if MAIL.encode() in lake.read(path)] == []


def _refused(client: WebHdfs, path: str = "/") -> StoreError:
    with pytest.raises(StoreError) as caught:
        client.status(path)
    return caught.value


def test_who_may_look(cluster: SecureHdfs, tmp_path: Path) -> None:
    folder = cluster.folder()
    cluster.ask(folder, "SETPERMISSION", permission="700")
    ann, nobody = cluster.client("ann"), cluster.client("nobody")
    with environment(cluster.kdc.client("ann", keytab=False)):
        assert _refused(ann).code == "NoTicket"
        cluster.kdc.kinit("ann", "ann")
        assert ann.status("/").kind == "DIRECTORY"
        assert isinstance(_refused(ann, "/nowhere"), Absent)
        with pytest.raises(StoreError) as caught:
            list(ann.entries(folder))
        assert caught.value.code == "AccessControlException"
        assert "kinit nobody@" in str(_refused(nobody).todo), "a ticket of somebody else is not shown"
        assert _refused(cluster.client("pii")).code == "NoTicket"
    ca, name_node = str(cluster.authority.ca), NameNodes((cluster.webhdfs,))
    assert "`kerberos: USER@REALM`" in str(_refused(WebHdfs(cluster.uri, name_node, "pii", Security(ca=ca))).todo)
    another = Security(principal("pii"), str(Authority.made(tmp_path, "another").ca))
    assert "SSLCertVerificationError" in _refused(WebHdfs(cluster.uri, name_node, "", another)).code
    by_number = NameNodes((cluster.webhdfs.replace("localhost", "127.0.0.1"),))
    numbered = WebHdfs(cluster.uri, by_number, "", Security(principal("pii"), ca))
    assert _refused(numbered).code == "NoService"


def test_without_its_kdc_no_answer_is_clean(cluster: SecureHdfs, tmp_path: Path) -> None:
    conf = tmp_path / "krb5.conf"
    conf.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", cluster.kdc.conf.read_text()))
    cluster.kdc.kinit("fresh", "pii")
    with environment({**cluster.kdc.client("fresh", keytab=False), "KRB5_CONFIG": str(conf)}):
        assert _refused(cluster.client()).code == "NoKdc"


def test_a_ticket_that_has_expired_is_none(cluster: SecureHdfs, tmp_path: Path) -> None:
    conf = tmp_path / "krb5.conf"
    conf.write_text(cluster.kdc.conf.read_text().replace("[libdefaults]", "[libdefaults]\n ticket_lifetime = 3s"))
    cluster.kdc.kinit("short", "pii", conf)
    with environment(cluster.kdc.client("short", keytab=False)):
        until = time.monotonic() + 60
        while _holds(principal("pii")):
            assert time.monotonic() < until
            time.sleep(0.2)
        error = _refused(cluster.client())
    assert error.code == "NoTicket"
    assert f"kinit {principal('pii')}" in str(error.todo)


def _holds(name: str) -> bool:
    try:
        return seconds_left(name) > 0
    except NoTicket:
        return False
