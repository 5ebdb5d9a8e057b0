"""Credentials of the environment, by google-auth itself, with a token server of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pii_tracer.lake.stores.gcs.credentials import default_credentials
from pii_tracer.model.errors import EstateError
from tests.servers import Json, answering


def _account(folder: Path, token_uri: str) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    told = {"type": "service_account", "client_email": "a@example.org", "private_key": pem, "token_uri": token_uri}
    file = folder / "account.json"
    file.write_text(json.dumps(told))
    return file


def test_a_token_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Tokens(Json):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.answer(200, json.dumps({"access_token": f"t{len(asked)}", "expires_in": 3600}).encode())

    with answering(Tokens) as uri:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(_account(tmp_path, f"{uri}/token")))
        headers = default_credentials()
        assert [headers(), headers()] == [{"Authorization": "Bearer t1"}] * 2
    assert len(asked) == 1


def test_what_gives_no_token_is_an_error_without_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses(Json):
        def do_POST(self) -> None:
            self.answer(400, b'{"error": "invalid_grant", "error_description": "secret"}')

    with answering(Refuses) as uri:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(_account(tmp_path, f"{uri}/token")))
        with pytest.raises(EstateError) as caught:
            default_credentials()()
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(EstateError, match="no credentials"):
        default_credentials()
