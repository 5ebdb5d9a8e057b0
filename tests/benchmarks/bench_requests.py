"""Lists of requests taken into the store: rows a second and memory, against a bare SQLite table with an index.

A list of invented keys as CSV, added, and added again (which adds nothing); then the two thousand that are due first are
listed, as `plan --requests` asks for them. The peer, in the same run: the same rows put into a table by `executemany`,
neither sealed nor judged nor kept apart from repeats. Then a list of California's DROP: as many hashed identifiers as the
source has persons, half of them theirs. Run: `make bench-requests`.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import resource
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Callable
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from pii_tracer.app.intake.drop_lists import add_drop, write_answers
from pii_tracer.app.intake.request_lists import add_requests
from pii_tracer.app.intake.request_states import list_requests
from pii_tracer.app.settings import Settings
from tests.cli.small import declared

ROWS = (10_000, 100_000, 1_000_000)
GIVEN = {"subject": "user", "law": "GDPR", "received": "2026-11-01T00:00:00Z"}
SUBJECT = "  - name: user\n    source: app.users\n    key: user_id\n"


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def bare(file: Path, base: Path) -> None:
    """The peer."""
    with sqlite3.connect(base / "bare.sqlite") as connection, file.open(newline="") as lines:
        connection.execute("CREATE TABLE requests (key TEXT, id TEXT PRIMARY KEY)")
        rows = csv.reader(lines)
        next(rows)
        connection.executemany("INSERT INTO requests VALUES (?, ?)", rows)


def drop(rows: int) -> None:
    """Print one line for a DROP list of that length against a source of as many persons."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        identifiers = "    identifiers: [{column: mail, category: email}]\n"
        (base / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta"}) + SUBJECT + identifiers)
        settings = Settings(base / "pii-tracer.yaml", base / "state")
        users = pa.table({"user_id": range(rows), "mail": [f"u{n}@x.example" for n in range(rows)]})
        write_deltalake(base / "w" / "users", users)
        with zipfile.ZipFile(base / "drop.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            lines = ["ID,Hash"]
            for n in range(rows):
                digest = hashlib.sha256(f"u{n * 2}@x.example".encode()).digest()
                lines.append(f"Item{n:08d},{base64.b64encode(digest).decode()}")
            archive.writestr("1234_Email_20261101.csv", "\n".join(lines) + "\n")
        received = datetime(2026, 11, 1, tzinfo=timezone.utc)
        began = time.perf_counter()
        found = add_drop(settings, base / "drop.zip", subject="user", received=received)
        took = time.perf_counter() - began
        answer = seconds(lambda: write_answers(settings, base / "answers.csv"))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{rows:>9,} DROP items against {rows:,} persons: {took:.1f} s ({found.matched:,} matched,"
        f" {found.not_found:,} not found), answered in {answer:.1f} s, {most:.0f} MiB at most"
    )


def main() -> None:
    """Print one line for each length of list."""
    for rows in ROWS:
        drop(rows)
    for rows in ROWS:
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            (base / "pii-tracer.yaml").write_text(declared("w", {"app.users": "delta"}) + SUBJECT)
            settings = Settings(base / "pii-tracer.yaml", base / "state")
            file = base / "list.csv"
            with file.open("w") as out:
                out.write("key,id\n")
                out.writelines(f"98{n:09d},R-{n}\n" for n in range(rows))
            peer = seconds(lambda at=base, of=file: bare(of, at))  # type: ignore[misc]
            first = seconds(lambda at=settings, of=file: add_requests(at, of, given=GIVEN))  # type: ignore[misc]
            again = seconds(lambda at=settings, of=file: add_requests(at, of, given=GIVEN))  # type: ignore[misc]
            due = seconds(lambda at=settings: list(islice(list_requests(at), 2_000)))  # type: ignore[misc]
            size = (settings.state / "requests.sqlite").stat().st_size / rows
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{rows:>9,} rows: added in {first:.1f} s ({rows / first:,.0f}/s, {first / peer:.0f} × a bare table),"
            f" again {again:.1f} s, the first 2,000 due {due:.2f} s, {size:.0f} bytes a request, {most:.0f} MiB at most"
        )


if __name__ == "__main__":
    main()
