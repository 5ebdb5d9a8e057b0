"""Kerberos on a connection of Thrift, on a scripted metastore; real ones are in `test_hive_secure.py`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest

from pii_tracer.common.kerberos import NoTicket
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.hive import security
from pii_tracer.lake.catalogs.hive.sasl import SaslTransport
from pii_tracer.lake.catalogs.hive.security import Security, way_out
from pii_tracer.lake.catalogs.hive.tables import list_hive
from tests.servers import free_ports

START, OK, BAD, COMPLETE = 1, 2, 3, 5
PROOF = b"a proof of the metastore"


class Shake:
    """What the library of Kerberos does, in a script: a signed message begins with `s`, an encrypted one with `e`."""

    proved = False

    def step(self, said: bytes | None = None) -> bytes:
        self.proved = said == PROOF
        return b"" if said else b"ticket"

    def wrap(self, message: bytes, *, encrypt: bool) -> bytes:
        return (b"e" if encrypt else b"s") + message

    def unwrap(self, message: bytes) -> bytes:
        if message[:1] not in (b"s", b"e"):
            raise NoTicket("NoHandshake", "not of the metastore")
        return message[1:]

    def fits(self, most: int, *, encrypt: bool) -> int:
        return most - 1


@dataclass
class Socket:
    """Has all that the metastore says, and keeps what it is sent."""

    says: bytes
    sent: bytearray = field(default_factory=bytearray)

    def read(self, size: int) -> bytes:
        found, self.says = self.says[:size], self.says[size:]
        if not found:
            raise EOFError
        return found

    def write(self, data: bytes) -> None:
        self.sent += data

    def flush(self) -> None:
        pass


def said(status: int, message: bytes = b"") -> bytes:
    return struct.pack(">BI", status, len(message)) + message


def frame(message: bytes) -> bytes:
    return struct.pack(">I", len(message)) + message


def transport(*says: bytes) -> tuple[SaslTransport, Socket]:
    socket = Socket(b"".join(says))
    return SaslTransport(socket, Shake()), socket  # type: ignore[arg-type]


def offer(layers: int, most: int = 5) -> bytes:
    return said(OK, b"s" + bytes([layers]) + most.to_bytes(3, "big"))


@pytest.mark.parametrize(
    ("layers", "chosen", "frames"),
    [
        (1, b"s\1\0\0\0", [b"abcdefgh"]),
        (2, b"s\2\xff\xff\xff", [b"sabcd", b"sefgh"]),
        (3, b"s\2\xff\xff\xff", [b"sabcd", b"sefgh"]),
        (7, b"s\4\xff\xff\xff", [b"eabcd", b"eefgh"]),
    ],
)
def test_the_strongest_protection_that_is_offered_is_taken(layers: int, chosen: bytes, frames: list[bytes]) -> None:
    answer = b"xyz" if layers == 1 else b"sxyz"
    made, socket = transport(said(OK, PROOF), offer(layers), said(COMPLETE), frame(answer))
    made.negotiate()
    assert bytes(socket.sent) == said(START, b"GSSAPI") + said(OK, b"ticket") + said(OK) + said(OK, chosen)
    socket.sent.clear()
    made.write(b"abcd")
    made.write(b"efgh")
    made.flush()
    assert bytes(socket.sent) == b"".join(map(frame, frames))
    assert (made.readAll(2), made.read(9)) == (b"xy", b"z")


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ([said(BAD, b"GSS initiate failed for pii")], "NotTaken"),
        ([said(COMPLETE)], "NotTaken"),
        ([said(OK, PROOF), said(COMPLETE)], "NotTaken"),
        ([said(OK, PROOF), offer(0)], "NoProtection"),
        ([said(OK, PROOF), said(OK, b"\1\0\0\0")], "NoHandshake"),
        ([b"HTTP/1.1 400 Bad Request"], "NoSasl"),
    ],
)
def test_who_does_not_prove_to_be_the_metastore_is_not_asked(says: list[bytes], code: str) -> None:
    made, _ = transport(*says)
    with pytest.raises(NoTicket) as caught:
        made.negotiate()
    assert caught.value.code == code
    assert "pii" not in str(caught.value)


def test_a_forged_frame_is_not_read() -> None:
    made, _ = transport(said(OK, PROOF), offer(2), said(COMPLETE), frame(b"forged"))
    made.negotiate()
    with pytest.raises(NoTicket):
        made.read(1)


def test_without_a_ticket_the_metastore_is_a_gap_that_says_kinit(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: str) -> None:
        raise NoTicket("NoTicket", "run `kinit pii@EXAMPLE.COM`")

    monkeypatch.setattr(security, "Handshake", none)
    with pytest.raises(NoTicket) as caught:
        Security("pii@EXAMPLE.COM").transport(Socket(b""), "hms")
    assert "kinit pii@EXAMPLE.COM" in way_out(caught.value, Security("pii@EXAMPLE.COM"))


def test_a_metastore_that_is_silent_is_a_gap_with_the_keys_to_add() -> None:
    [port] = free_ports(1)
    catalog = Catalog.model_validate({"type": "hive", "uri": f"thrift://127.0.0.1:{port}"})
    [gap] = list_hive("lake", catalog).gaps
    assert "`kerberos: USER@REALM`" in gap.reason
    assert "`tls: true`" in gap.reason
