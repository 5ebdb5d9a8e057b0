"""A small estate with a request store, for tests of lists and states."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from pii_tracer.app.intake.request_lists import Added, add_requests
from pii_tracer.app.intake.request_store import store_of
from pii_tracer.app.settings import Settings
from pii_tracer.intake.request_store import RequestStore
from tests.cli.small import declared

NOW = datetime.now(timezone.utc).replace(microsecond=0)
DAY = timedelta(days=1)


def ago(days: float) -> str:
    return (NOW - days * DAY).isoformat()


GIVEN = {"subject": "user", "law": "GDPR", "received": ago(2)}


def place(base: Path, more: str = "", database: str | None = None) -> Settings:
    """An estate file with the subject `user` of `app.users`; no table is there. database: of the requests, or a file."""
    more += f"request_store: {database}\n" if database else ""
    subject = "  - name: user\n    source: app.users\n    key: user_id\n"
    estate = declared("w", {"app.users": "delta"}) + subject + more
    (base / "pii-tracer.yaml").write_text(estate)
    (base / "policy.yaml").write_text("version: 1\n")
    return Settings(base / "pii-tracer.yaml", base / "state")


def took(settings: Settings, text: str | bytes, name: str = "list.csv", **more: object) -> Added:
    """What comes of a list with this text."""
    file = settings.base / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return add_requests(settings, file, **{"given": GIVEN, **more})  # type: ignore[arg-type]


def counts(done: Added) -> tuple[int, int, int, int, int]:
    return done.added, done.joined, done.repeated, done.known, done.refused


def ids(store: RequestStore) -> list[str]:
    return [request.id for request in store.requests()]


def opened(settings: Settings) -> RequestStore:
    return store_of(settings)
