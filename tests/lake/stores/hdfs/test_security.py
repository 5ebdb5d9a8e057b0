"""Kerberos and TLS to HDFS: who is shown a ticket, who is believed, and what an error says. Scripted servers on
loopback; the real ones are in `tests/hdfs/test_secure.py`.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import ValidationError

from pii_tracer.common.kerberos import NoTicket
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.stores.base import Absent, StoreError
from pii_tracer.lake.stores.hdfs import security
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.security import Security, is_trusted_target
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, client_at
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import hdfs_location
from tests.certificates import Authority
from tests.servers import Json, served

NAME = "hdfs://localhost:8020"
PII = "pii@EXAMPLE.COM"
POOL = "BP-1-localhost-1"
TICKET, PROOF, TOKEN = b"a ticket of pii", b"a proof of the NameNode", "a-delegation-token"


class Shake:
    """What the library of Kerberos does, in a script: one message there, and one back that proves the server."""

    proved = False

    def __init__(self, principal: str, service: str, host: str) -> None:
        assert (principal, service, host) == (PII, "HTTP", "localhost")

    def step(self, said: bytes | None = None) -> bytes:
        self.proved = said == PROOF
        return TICKET


class NoShake(Shake):
    def __init__(self, *_: str) -> None:
        raise NoTicket("NoTicket", f"run `kinit {PII}`")


class Server(Json):
    """Answers as a NameNode or a DataNode does. seen: path and headers of each request."""

    seen: list[tuple[str, dict[str, str]]]
    location = ""
    proof: bytes | None = PROOF
    status = 200
    refusal = "FileNotFoundException"
    shut = False

    def do_GET(self) -> None:
        self.seen.append((self.path, dict(self.headers.items())))
        if "/jmx" in self.path:
            asked = self.shut and "Authorization" not in self.headers
            self.answer(
                401 if asked else 200, json.dumps({"beans": [{"BlockPoolId": POOL, "State": "active"}]}).encode()
            )
        elif "op=OPEN" in self.path and "noredirect" not in self.path:
            self.answer(200 if self.status == 200 else 403, b"bytes")
        elif self.status == 401:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Negotiate")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.status != 200:
            self.answer(self.status, json.dumps({"RemoteException": {"exception": self.refusal}}).encode())
        else:
            self.answer(200, json.dumps({"Path": "/user/pii", "Location": self.location}).encode())

    def end_headers(self) -> None:
        if self.proof is not None and "Authorization" in self.headers:
            self.send_header("WWW-Authenticate", "Negotiate " + base64.b64encode(self.proof).decode())
        super().end_headers()


@contextmanager
def server(authority: Authority | None = None, **more: object) -> Iterator[tuple[str, type[Server]]]:
    """Its address, with the class that remembers what it was asked."""
    kind = type("Mine", (Server,), {"seen": [], **more})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as made:
        if authority:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(authority.server)
            made.socket = context.wrap_socket(made.socket, server_side=True)
        with served(made):
            yield f"{'https' if authority else 'http'}://localhost:{made.server_port}", kind


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "Handshake", Shake)


def estate(webhdfs: str, **more: str) -> Estate:
    return Estate(
        version=1,
        estate="hdfs",
        environment="local",
        catalogs={},
        roots=(f"{NAME}/lake",),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="s", key="id"),),
        hdfs=(NameNode.model_validate({"namenode": NAME, "webhdfs": webhdfs, **more}),),
    )


def kerberos_at(webhdfs: str, ca: Path | None = None) -> WebHdfs:
    more = {"ca": str(ca)} if ca else {}
    return client_at(estate(webhdfs, kerberos=PII, **more), hdfs_location(f"{NAME}/lake"))


def refusal(client: WebHdfs, call: str = "home", *arguments: object) -> StoreError:
    with pytest.raises(StoreError) as caught:
        getattr(client, call)(*arguments)
    text = f"{caught.value} {caught.value.todo} {caught.value!r}"
    for secret in (TOKEN, base64.b64encode(TICKET).decode(), base64.b64encode(PROOF).decode()):
        assert secret not in text
    return caught.value


@pytest.mark.usefixtures("scripted")
def test_a_ticket_is_shown_to_the_name_node_and_to_nobody_else(authority: Authority) -> None:
    with server(authority) as (data_node, at_data_node), server(authority) as (name_node, at_name_node):
        at_name_node.location = f"{data_node}/webhdfs/v1/lake/a?op=OPEN&delegation={TOKEN}"
        assert kerberos_at(name_node, authority.ca).read("/lake/a", 0, 5) == b"bytes"
    [(path, headers)] = at_name_node.seen
    assert headers["Authorization"] == "Negotiate " + base64.b64encode(TICKET).decode()
    assert "user.name" not in path
    [(path, headers)] = at_data_node.seen
    assert "Authorization" not in headers
    assert f"delegation={TOKEN}" in path, "the NameNode's token for this one request"


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("shut", [True, False])
def test_a_block_pool_is_asked_with_a_ticket_only_where_the_server_wants_one(authority: Authority, shut: bool) -> None:
    with server(authority, shut=shut) as (address, seen):
        declared = estate(address, kerberos=PII, ca=str(authority.ca), block_pool=POOL)
        assert client_at(declared, hdfs_location(f"{NAME}/lake")).home() == "/user/pii"
    looks = ["Authorization" in headers for path, headers in seen.seen if "/jmx" in path]
    assert looks == ([False, True] * 2 if shut else [False] * 2)


@pytest.mark.usefixtures("scripted")
def test_a_name_node_with_tls_may_name_no_address_without(authority: Authority) -> None:
    with server() as (data_node, at_data_node), server(authority) as (name_node, at_name_node):
        at_name_node.location = f"{data_node}/webhdfs/v1/lake/a?op=OPEN&delegation={TOKEN}"
        error = refusal(kerberos_at(name_node, authority.ca), "read", "/lake/a", 0, 5)
    assert error.code == "NotTrusted"
    assert not at_data_node.seen


@pytest.mark.parametrize("name_node", ["http://nn:9870", "https://nn:9871"])
@pytest.mark.parametrize(
    "target", ["", "/x", "ftp://dn/x", "file:///x", "https://", "https://u:p@dn/x", "https://d:0/x"]
)
def test_targets_that_are_no_address_of_a_data_node(name_node: str, target: str) -> None:
    assert not is_trusted_target(target, name_node)


def test_targets_that_a_name_node_may_name() -> None:
    assert is_trusted_target("https://dn:9865/webhdfs/v1/a", "https://nn:9871")
    assert is_trusted_target("http://dn:9864/webhdfs/v1/a", "http://nn:9870")
    assert is_trusted_target("https://dn:9865/webhdfs/v1/a", "http://nn:9870")
    assert not is_trusted_target("http://dn:9864/webhdfs/v1/a", "https://nn:9871")


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("proof", [None, b"somebody else's", b""])
@pytest.mark.parametrize(("status", "code"), [(200, "NotProved"), (404, "NotProved"), (403, "NoTicketTaken")])
def test_who_does_not_prove_to_be_the_name_node_is_not_believed(proof: bytes | None, status: int, code: str) -> None:
    """Not even that nothing is there: a trash that is absent counts as empty."""
    with server(proof=proof, status=status) as (name_node, _):
        error = refusal(kerberos_at(name_node))
    assert error.code == code
    assert not isinstance(error, Absent)


@pytest.mark.usefixtures("scripted")
def test_what_a_name_node_refuses_is_believed_if_it_proves_itself() -> None:
    with server(status=404) as (name_node, _):
        assert isinstance(refusal(kerberos_at(name_node)), Absent)


@pytest.mark.usefixtures("scripted")
def test_an_error_at_a_data_node_shows_no_token() -> None:
    with server(status=403) as (data_node, _), server() as (name_node, at_name_node):
        at_name_node.location = f"{data_node}/webhdfs/v1/lake/a?op=OPEN&delegation={TOKEN}"
        refusal(kerberos_at(name_node), "read", "/lake/a", 0, 5)
        at_name_node.location = f"http://localhost:1/webhdfs/v1/lake/a?op=OPEN&delegation={TOKEN}"
        refusal(kerberos_at(name_node), "read", "/lake/a", 0, 5)


@pytest.mark.usefixtures("scripted")
def test_a_proxy_of_the_environment_sees_no_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    with server() as (proxy, at_proxy), server() as (name_node, _):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        assert kerberos_at(name_node).home() == "/user/pii"
    assert not at_proxy.seen


def test_a_certificate_counts_if_the_authority_signed_it(authority: Authority, tmp_path: Path) -> None:
    another = Authority.made(tmp_path, "another")
    with server(authority) as (address, seen):
        own = WebHdfs(NAME, NameNodes((address,)), "pii", Security(ca=str(authority.ca)))
        assert own.home() == "/user/pii"
        for wrong in (str(another.ca), None):
            error = refusal(WebHdfs(NAME, NameNodes((address,)), "pii", Security(ca=wrong)))
            assert "SSLCertVerificationError" in error.code
            assert "hdfs.ca" in str(error.todo)
        elsewhere = address.replace("localhost", "127.1")
        assert "SSL" in refusal(WebHdfs(NAME, NameNodes((elsewhere,)), "pii", Security(ca=str(authority.ca)))).code
        assert (
            refusal(WebHdfs(NAME, NameNodes((address,)), "pii", Security(ca=str(tmp_path / "none.pem")))).code
            == "NoCertificates"
        )
    assert len(seen.seen) == 1, "nobody else was asked anything"


def _gaps(one: Estate, tmp_path: Path) -> str:
    found = discover(one, tmp_path)
    return " ".join(gap.reason for gap in found.gaps if gap.kind == GapKind.HDFS_UNREAD)


def test_a_name_node_that_asks_for_kerberos_is_a_gap_with_the_line_to_add(tmp_path: Path) -> None:
    with server(status=401) as (name_node, _):
        assert "`kerberos: USER@REALM`" in _gaps(estate(name_node, user="pii"), tmp_path)


def test_without_a_ticket_a_place_is_a_gap_that_says_kinit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "Handshake", NoShake)
    with server() as (name_node, asked):
        assert f"kinit {PII}" in _gaps(estate(name_node, kerberos=PII), tmp_path)
    assert not asked.seen


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "either `user"),
        ({"user": "pii", "kerberos": PII}, "either `user"),
        ({"kerberos": "pii"}, "pattern"),
        ({"user": "pii", "ca": "/etc/ca.pem"}, "`ca` applies only"),
        ({"user": "pii", "webhdfs": "https://nn:9871", "ca": "ca.pem"}, "pattern"),
        ({"user": "pii", "webhdfs": "nn:9870"}, "write `http://host:port`"),
        ({"user": "pii", "webhdfs": ["https://nn1:9871", "http://nn2:9870"]}, "for all NameNodes"),
        ({"user": "pii", "webhdfs": "http://user@nn:9870"}, "write `http://host:port`"),
        ({"user": "pii", "webhdfs": "https://nn:9870/x"}, "write `http://host:port`"),
        ({"user": "pii", "webhdfs": "http://"}, "write `http://host:port`"),
        ({"user": "pii", "verify": "false"}, "Extra inputs"),
    ],
)
def test_what_the_estate_file_may_not_say(more: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        NameNode.model_validate({"namenode": NAME, "webhdfs": "http://nn:9870", **more})
