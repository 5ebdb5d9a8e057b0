"""A small estate on which each kind of drift is planted: Delta tables without Spark, jobs as SQL, one canary."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import yaml
from deltalake import write_deltalake

from pii_tracer.app import Readiness, Settings, readiness
from pii_tracer.app.settings import DEFAULT_ESTATE
from pii_tracer.readiness.findings import Finding, FindingKind
from tests.cli.small import declared

CANARY, MAIL = "8800112233445", "wren.canary@invented.example"
NOW = datetime(2026, 11, 27, 5, 0, tzinfo=timezone.utc)
JOBS = {
    "mails": "INSERT OVERWRITE app.mails SELECT user_id, email FROM app.users;",
    "shipped": "INSERT OVERWRITE app.shipped SELECT user_id AS buyer FROM app.users WHERE email LIKE '%north%';",
}
SUBJECT = """\
  - name: user
    source: app.users
    key: user_id
    identifiers: [{column: email, category: email}]
"""
READINESS = {
    "owners": {"app.mails": "mail team", "app.ship*": "logistics", "app.*": "platform", "*/w/*": "lake keepers"},
    "laws": ["GDPR"],
    "canaries": [{"name": "wren", "subject": "user", "key": "env:WREN"}],
}


@dataclass
class Shop:
    """The estate in a folder; `WREN` of the environment has the canary's key."""

    base: Path

    @property
    def settings(self) -> Settings:
        return Settings(self.base / DEFAULT_ESTATE, self.base / "state")

    def table(self, name: str, rows: dict[str, list[object]], configuration: dict[str, str] | None = None) -> None:
        shutil.rmtree(self.base / "w" / name, ignore_errors=True)
        known = {n: None if v is None else str(v) for n, v in (configuration or {}).items()}
        write_deltalake(self.base / "w" / name, pa.table(rows), configuration=known)

    def write(self, jobs: dict[str, str], readiness: dict[str, object], tables: tuple[str, ...] = ()) -> None:
        names = {f"app.{name}": "delta" for name in ("users", "mails", "shipped", *tables)}
        text = declared("w", names) + SUBJECT + yaml.safe_dump({"readiness": readiness}, sort_keys=False)
        self.settings.estate_file.write_text(text)
        (self.base / "jobs.sql").write_text("\n".join(jobs.values()) + "\n")

    def read(self, days: float = 0) -> Readiness:
        return readiness(self.settings, as_of=NOW + timedelta(days=days))


def shop(base: Path) -> Shop:
    """An estate in which nothing is wrong."""
    made = Shop(base)
    (base / "w").mkdir(parents=True)
    made.table("users", {"user_id": [4417700102031, int(CANARY)], "email": ["chen@north.example", MAIL]})
    made.table("mails", {"user_id": [4417700102031, int(CANARY)], "email": ["chen@north.example", MAIL]})
    made.table("shipped", {"buyer": [4417700102031]})
    made.write(JOBS, READINESS)
    made.settings.key(create=True)
    return made


def only(found: Readiness, kind: FindingKind) -> Finding:
    """The one finding of a kind."""
    [one] = [finding for finding in found.findings if finding.kind is kind]
    return one
