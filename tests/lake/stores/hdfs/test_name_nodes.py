"""Which NameNode of a nameservice is asked, against servers that refuse as HDFS refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs import name_nodes
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from tests.servers import Json, answering

POOL = "BP-1-127.0.0.1-1"


@dataclass
class Told:
    """A NameNode as a test wants it. state: as its bean says; refuses: with which exception, as long as it is set.

    hangs_up: it takes a request, and the connection breaks. wants_name: who does not say a name learns nothing of it.
    asked: operations that came. looked: how often it was asked who it is.
    """

    state: str = "active"
    pool: str | None = POOL
    refuses: str = ""
    hangs_up: bool = False
    wants_name: bool = False
    asked: list[str] = field(default_factory=list)
    looked: int = 0
    address: str = ""

    def standby(self) -> None:
        self.state, self.refuses = "standby", "StandbyException"

    def active(self) -> None:
        self.state, self.refuses = "active", ""


def _handler(told: Told) -> type[Json]:
    class Handler(Json):
        def do_GET(self) -> None:
            if self.path.startswith("/jmx"):
                told.looked += 1
                name, _, more = self.path.rpartition("::")[2].partition("&")
                if told.wants_name and more != "user.name=lake":
                    return self.answer(401, b"")
                value = {"BlockPoolId": told.pool, "State": told.state}[name]
                return self.answer(200, json.dumps({"beans": [{name: value}]}).encode())
            return self._operation()

        def do_PUT(self) -> None:
            return self._operation()

        do_DELETE = do_PUT

        def _operation(self) -> None:
            told.asked.append(self.path.partition("op=")[2].partition("&")[0])
            if told.hangs_up:
                self.connection.shutdown(socket.SHUT_RDWR)
            elif told.refuses:
                said = {"RemoteException": {"exception": told.refuses, "message": "x"}}
                self.answer(403, json.dumps(said).encode())
            else:
                self.answer(200, json.dumps({"Path": f"/user/{told.asked[-1]}", "boolean": True}).encode())

    return Handler


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Told, Told]]:
    """An active NameNode and a standby; nobody waits long for a failover."""
    monkeypatch.setattr(name_nodes, "_PAUSES", (0.0, 0.0))
    one, two = Told(), Told()
    two.standby()
    with ExitStack() as stack:
        for told in (one, two):
            told.address = stack.enter_context(answering(_handler(told)))
        yield one, two


def client(*told: Told | str, block_pool: str = "") -> WebHdfs:
    addresses = tuple(one if isinstance(one, str) else one.address for one in told)
    return WebHdfs("hdfs://ns", NameNodes(addresses, block_pool), "lake")


def refused(act: Callable[[], Any]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        act()
    return caught.value


NOBODY = "http://127.0.0.1:9"


def test_the_active_one_is_asked_and_remembered(pair: tuple[Told, Told]) -> None:
    active, standby = pair
    hdfs = client(standby, active)
    assert hdfs.home() == "/user/GETHOMEDIRECTORY"
    looked = active.looked
    hdfs.delete("/a")
    assert (standby.asked, active.asked) == (["GETHOMEDIRECTORY"], ["GETHOMEDIRECTORY", "DELETE"])
    assert active.looked == looked, "who it is was known"


def test_a_change_that_a_standby_refused_goes_to_the_active_one(pair: tuple[Told, Told]) -> None:
    one, two = pair
    hdfs = client(one, two)
    hdfs.home()
    one.standby()
    two.active()
    hdfs.rename("/a", "/b", overwrite=True)
    assert (one.asked[-1], two.asked) == ("RENAME", ["RENAME"])


def test_a_change_without_an_answer_is_not_repeated(pair: tuple[Told, Told]) -> None:
    one, two = pair
    hdfs = client(one, two)
    hdfs.home()
    one.hangs_up = True
    two.active()
    error = refused(lambda: hdfs.delete("/a"))
    assert error.code == "UnknownOutcome"
    assert "resume" in str(error.todo)
    assert two.asked == []
    assert hdfs.home(), "what changes nothing is asked of the other one"
    assert two.asked == ["GETHOMEDIRECTORY"]


def test_a_change_that_reached_nobody_goes_to_the_other_one(pair: tuple[Told, Told]) -> None:
    _, two = pair
    dying = Told()
    with answering(_handler(dying)) as dying.address:
        hdfs = client(dying, two)
        hdfs.delete("/a")
    two.active()
    hdfs.delete("/b")
    assert (dying.asked, two.asked) == (["DELETE"], ["DELETE"])
    never_seen = client(NOBODY, two, block_pool=POOL)
    never_seen.delete("/c")
    assert two.asked == ["DELETE", "DELETE"]


def test_a_failover_is_waited_for(pair: tuple[Told, Told], monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    one.standby()
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        two.active()

    monkeypatch.setattr(name_nodes, "sleep", sleep)
    client(one, two).delete("/a")
    assert (len(waited), two.asked) == (1, ["DELETE", "DELETE"])


def test_two_standbys_are_an_error_that_says_so_and_the_next_request_does_not_wait(
    pair: tuple[Told, Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    one.standby()
    hdfs = client(one, two)
    error = refused(hdfs.home)
    assert (error.code, "haadmin" in str(error.todo)) == ("NoActiveNameNode", True)
    monkeypatch.setattr(name_nodes, "sleep", lambda seconds: pytest.fail("it waits again"))
    assert refused(hdfs.home).code == "NoActiveNameNode"
    two.active()
    assert hdfs.home()
    two.standby()
    monkeypatch.setattr(name_nodes, "sleep", lambda seconds: one.active())
    assert hdfs.home(), "the next failover is waited for"


def test_none_that_can_be_reached_is_an_error_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_nodes, "sleep", lambda seconds: pytest.fail("it waits"))
    error = refused(client(NOBODY, "http://127.0.0.1:10", block_pool=POOL).home)
    assert error.code.startswith("does not answer")


def test_a_name_node_that_starts_is_named_as_such(pair: tuple[Told, Told]) -> None:
    one, two = pair
    one.refuses = "RetriableException"
    error = refused(client(one, two).home)
    assert (error.code, "safe mode" in str(error.todo)) == ("RetriableException", True)


def test_other_refusals_of_the_active_one_are_its_answer(pair: tuple[Told, Told]) -> None:
    one, two = pair
    one.refuses = "AccessControlException"
    assert refused(client(one, two).home).code == "AccessControlException"
    assert two.asked == []


@pytest.mark.parametrize("declared", ["", POOL])
def test_name_nodes_of_two_clusters_are_never_mixed(pair: tuple[Told, Told], declared: str) -> None:
    one, two = pair
    two.pool = "BP-2-127.0.0.1-2"
    two.active()
    one.standby()
    hdfs = client(one, two, block_pool=declared)
    assert refused(lambda: hdfs.delete("/a")).code == "OtherBlockPool"
    assert two.asked == []


def test_two_clusters_are_noticed_before_a_failover(pair: tuple[Told, Told]) -> None:
    one, two = pair
    two.pool = "BP-2-127.0.0.1-2"
    assert refused(client(one, two).home).code == "OtherBlockPool"
    assert one.asked == []


def test_another_cluster_behind_an_address_that_was_down_is_noticed(pair: tuple[Told, Told]) -> None:
    one, two = pair
    hdfs = client(one, two)
    hdfs.home()
    one.standby()
    two.active()
    two.pool = "BP-2-127.0.0.1-2"
    assert refused(hdfs.home).code == "OtherBlockPool"


def test_of_an_unknown_cluster_nothing_is_asked_unless_the_owner_says_which_it_is(pair: tuple[Told, Told]) -> None:
    active, _ = pair
    error = refused(client(active, NOBODY).home)
    assert (error.code, "block_pool" in str(error.todo)) == ("UnknownBlockPool", True)
    assert active.asked == []
    assert client(active, NOBODY, block_pool=POOL).home()
    active.pool = None
    assert (
        refused(client(active, "http://127.0.0.1:11", block_pool=POOL).home).code
        == "does not report which NameNode it is"
    )


def test_an_observer_is_never_asked(pair: tuple[Told, Told]) -> None:
    one, two = pair
    hdfs = client(two, one)
    assert hdfs.home(), "it was a standby"
    two.active()
    two.state = "observer"
    one.standby()
    assert refused(hdfs.home).code == "NoActiveNameNode"
    assert two.asked == ["GETHOMEDIRECTORY"]
    assert refused(client(two, NOBODY, block_pool=POOL).home).code == "ObserverNameNode"
    assert two.asked == ["GETHOMEDIRECTORY"]


def test_a_name_node_that_became_an_observer_is_asked_no_more(
    pair: tuple[Told, Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    hdfs = client(one, two)
    assert hdfs.home()
    one.state = "observer"  # it answers reads, with what was there a while ago
    two.active()
    monkeypatch.setattr(name_nodes, "_FRESH", 0.0)
    assert hdfs.home()
    assert (len(one.asked), len(two.asked)) == (1, 1)


def test_a_web_server_that_wants_a_name_gets_it(pair: tuple[Told, Told]) -> None:
    one, two = pair
    one.wants_name = two.wants_name = True
    assert client(one, two).home()


def test_a_refusal_to_say_who_it_is_is_named_as_such(pair: tuple[Told, Told]) -> None:
    one, two = pair
    one.wants_name = two.wants_name = True
    hdfs = WebHdfs("hdfs://ns", NameNodes((one.address, two.address)), "ann")
    assert refused(hdfs.home).code == "HTTP 401"
    assert one.asked == two.asked == []


def test_one_address_is_asked_without_more(pair: tuple[Told, Told]) -> None:
    _, standby = pair
    standby.pool = None
    error = refused(client(standby).home)
    assert (error.code, "all NameNodes" in str(error.todo)) == ("StandbyException", True)
