"""A small shop: a table of users, and a lakeFS repository that carries its rows on branches, tags and lost commits."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from pii_tracer.config.estate_file import Estate
from tests.lakefs.standin import Lakefs, Repo
from tests.lakefs.standin_api import ACCESS, SECRET
from tests.sparksession import small_spark

USER, MAIL = "770000000001", "zq.person@example.net"
OTHERS = [(f"88000000{n:04}", f"by{n}@example.org") for n in range(4)]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
PREFIX = "exports/"


def csv(*people: tuple[str, str]) -> bytes:
    return b"uid,mail\n" + b"".join(f"{uid},{mail}\n".encode() for uid, mail in people)


def parquet(*people: tuple[str, str]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"uid": [u for u, _ in people], "mail": [m for _, m in people]}), sink)
    return sink.getvalue()


PERSON = (USER, MAIL)


def declared(url: str, root: str, **more: Any) -> list[dict[str, Any]]:
    """The estate file's `lakefs`."""
    repository = {
        "name": "shop",
        "of": "shop.users",
        "format": "csv",
        "prefixes": [PREFIX],
        "owner": "platform",
        **more,
    }
    return [{"name": "lake", "endpoint": url, "local_root": root, "repositories": [repository]}]


def estate_data(url: str, root: str, **more: Any) -> dict[str, Any]:
    """A whole estate file."""
    table = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    return {
        "version": 1,
        "estate": "shop",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {"spark_catalog": {"type": "declared", "tables": [table]}},
        "roots": ["tables"],
        "lineage": {},
        "subjects": [
            {
                "name": "user",
                "source": "shop.users",
                "key": "uid",
                "identifiers": [{"column": "mail", "category": "email"}],
            }
        ],
        "lakefs": declared(url, root, **more),
    }


@dataclass
class Shop:
    """What a test has: the server, its repository, the estate file beside a real table. commits: by what they are."""

    lakefs: Lakefs
    repo: Repo
    base: Path
    root: Path
    now: datetime = NOW
    commits: dict[str, str] = field(default_factory=dict)

    def estate(self, **more: Any) -> Estate:
        return Estate.model_validate(estate_data(self.lakefs.url, str(self.root), **more))

    def write(self, holds: Sequence[dict[str, Any]] = (), **more: Any) -> None:
        """The estate file, the policy, and a request."""
        folder = self.base / "tables" / "users"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0.parquet").write_bytes(parquet(*OTHERS, PERSON))
        data = estate_data(self.lakefs.url, str(self.root), **more) | {"holds": list(holds)}
        (self.base / "pii-tracer.yaml").write_text(yaml.safe_dump(data))
        policy = {"version": 1, "allow_immediate_retention": True}
        (self.base / "policy.yaml").write_text(yaml.safe_dump(policy))
        request = {
            "id": "SHOP-1",
            "law": "GDPR",
            "received": (self.now - timedelta(days=1)).isoformat(),
            "subject": {"type": "user", "key": USER},
        }
        (self.base / "request.yaml").write_text(yaml.safe_dump(request))

    def at(self, days: float) -> None:
        """Set the server's clock, in days from now."""
        self.lakefs.now = self.now + timedelta(days=days)

    def addresses(self, *people: tuple[str, str]) -> set[str]:
        """Everything in the storage that names one of some people."""
        wanted = [text.encode() for person in people for text in person]
        stored = self.lakefs.everything(self.repo)
        return {address for address, data in stored.items() if any(text in data for text in wanted)}


def build(lakefs: Lakefs, base: Path, root: Path, now: datetime = NOW) -> Shop:
    """The person stands on two branches and in a commit that a deleted branch left behind; others everywhere.

    main: first (30 days ago), second (20), third (2). dev from second, with a commit of its own (10). gone from first,
    with a commit (15), deleted since. free from third, written anew without the person (1).
    """
    shop = Shop(lakefs, lakefs.repository("shop"), base, root, now)
    repo, names = shop.repo, shop.commits
    shop.at(-30)
    lakefs.put(repo, "main", PREFIX + "users-1.csv", csv(OTHERS[0], PERSON))
    lakefs.put(repo, "main", PREFIX + "users-2.csv", csv(OTHERS[1]))
    lakefs.put(repo, "main", "notes.txt", b"nothing of anybody")
    names["first"] = lakefs.commit(repo, "main")
    lakefs.branch(repo, "gone", "main")
    shop.at(-20)
    lakefs.put(repo, "main", PREFIX + "users-3.csv", csv(OTHERS[2], PERSON))
    names["second"] = lakefs.commit(repo, "main")
    lakefs.branch(repo, "dev", "main")
    shop.at(-15)
    lakefs.put(repo, "gone", PREFIX + "users-1.csv", csv(OTHERS[0], PERSON, PERSON))
    names["gone"] = lakefs.commit(repo, "gone")
    lakefs.drop_branch(repo, "gone")
    shop.at(-10)
    lakefs.put(repo, "dev", PREFIX + "users-4.csv", csv(OTHERS[3], PERSON), metadata={"owner": "dev"})
    names["dev"] = lakefs.commit(repo, "dev")
    shop.at(-2)
    lakefs.put(repo, "main", PREFIX + "users-2.csv", csv(OTHERS[1], OTHERS[2]))
    names["third"] = lakefs.commit(repo, "main")
    lakefs.branch(repo, "free", "main")
    shop.at(-1.5)
    for path, people in (("users-1.csv", [OTHERS[0]]), ("users-3.csv", [OTHERS[2]])):
        lakefs.put(repo, "free", PREFIX + path, csv(*people))
    names["free"] = lakefs.commit(repo, "free")
    repo.tags["v1"] = names["free"]
    repo.rules = {"default_retention_days": 60, "branches": [{"branch_id": "dev", "retention_days": 90}]}
    shop.at(0)
    return shop


KEY_PAIR = {"LAKECTL_CREDENTIALS_ACCESS_KEY_ID": ACCESS, "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": SECRET}
