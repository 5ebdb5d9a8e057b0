"""What errors of Kerberos' library mean, with the numbers that MIT's library gives (`tests/hdfs/test_secure.py`)."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pii_tracer.common.kerberos import KERBEROS, SPNEGO, Handshake, NoTicket

PII = "pii@EXAMPLE.COM"
SECRET = "of the library"


class GSSError(Exception):
    def __init__(self, minor: int) -> None:
        super().__init__(SECRET)
        self.min_code = minor


class ExpiredCredentialsError(GSSError):
    pass


def library(errors: dict[str, Exception], ticket: Exception | None = None) -> SimpleNamespace:
    """As python-gssapi. errors: of the first step, by mechanism; ticket: why there is none."""

    class Context:
        complete = False

        def __init__(self, *, mech: str, **_: Any) -> None:
            self.mech = mech

        def step(self, said: bytes | None = None) -> bytes:
            raise errors[self.mech]

    def credentials(**_: Any) -> object:
        if ticket:
            raise ticket
        return object()

    flags = ("mutual_authentication", "replay_detection", "out_of_sequence_detection", "confidentiality", "integrity")
    return SimpleNamespace(
        Credentials=credentials,
        SecurityContext=Context,
        Name=lambda name, kind: name,
        NameType=SimpleNamespace(kerberos_principal=1, hostbased_service=2),
        OID=SimpleNamespace(from_int_seq=lambda text: text),
        RequirementFlag=SimpleNamespace(**dict.fromkeys(flags, 0)),
        exceptions=SimpleNamespace(GSSError=GSSError, ExpiredCredentialsError=ExpiredCredentialsError),
    )


@pytest.mark.parametrize(
    ("minor", "code", "says"),
    [
        (2529638944, "NoTicket", f"kinit {PII}"),  # ticket expired
        (2529639053, "NoTicket", f"kinit {PII}"),  # no such principal in the cache
        (2529638919, "NoService", "as the realm has it"),
        (2529638949, "ClockSkew", "clock"),
        (2529639068, "NoKdc", "does not answer"),
        (2529639066, "NoKdc", "name no KDC"),
        (7, "NoHandshake", "kvno"),
    ],
)
def test_an_error_says_what_to_do(minor: int, code: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", library({SPNEGO: GSSError(100005), KERBEROS: GSSError(minor)}))
    for mechanism in (SPNEGO, KERBEROS):
        with pytest.raises(NoTicket) as caught:
            Handshake(PII, "HTTP", "nn", mechanism).step()
        assert caught.value.code == code
        assert says in caught.value.todo
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("error", [GSSError(1), ExpiredCredentialsError(2)])
def test_without_a_ticket_it_says_kinit(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", library({}, ticket=error))
    with pytest.raises(NoTicket) as caught:
        Handshake(PII, "HTTP", "nn")
    assert f"kinit {PII}" in caught.value.todo


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(NoTicket) as caught:
        Handshake(PII, "HTTP", "nn")
    assert "pip install 'pii-tracer[kerberos]'" in caught.value.todo
