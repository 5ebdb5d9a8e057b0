"""Lists of requests taken into the store: rows a second and memory, against a bare SQLite table with an index.

A list of invented keys as CSV, added, and added again (which adds nothing); then the two thousand that are due first are
listed, as `plan --requests` asks for them. The peer, in the same run: the same rows put into a table by `executemany`,
neither sealed nor judged nor kept apart from repeats. Run: `make bench-requests`.
"""

from __future__ import annotations

import csv
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

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


def main() -> None:
    """Print one line for each length of list."""
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
