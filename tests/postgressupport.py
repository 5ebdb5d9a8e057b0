"""A PostgreSQL server of the tests' own: on a socket in a temporary folder, one for each test process.

Where the machine has no server (`/usr/lib/postgresql/*/bin`, as Debian's package puts it) or the client library is not
installed, tests that ask for it are skipped. The server refuses to run as root, so that another user runs it then.
"""

from __future__ import annotations

import atexit
import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

USERS = ("postgres", "nobody")
QUICK = "-c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=16MB"


@dataclass
class Server:
    """The server. folder: its socket. user: of the operating system and of the database. programs: pg_ctl and others."""

    folder: Path
    user: str
    programs: Path
    made: Iterator[int] = field(default_factory=lambda: count(1))

    def url(self, schema: str) -> str:
        """Of an empty schema, as a database of its own."""
        options = quote(f"-csearch_path={schema}")
        return f"postgresql://{self.user}@/postgres?host={quote(str(self.folder), safe='')}&options={options}"

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The URL of a new schema, which goes afterwards."""
        import psycopg

        name = f"s{os.getpid()}_{next(self.made)}"
        with psycopg.connect(self.url("public"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
            yield self.url(name)
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())

    def start(self, options: str = QUICK) -> None:
        """Start it on its data, also after it was killed."""
        words = ("-l", self.folder / "log", "-w", "-o", f"{options} -k {self.folder}", "start")
        until = time.monotonic() + 30
        while True:
            try:
                _as(self.user, self.programs / "pg_ctl", "-D", self.folder / "data", *words)
                return
            except subprocess.CalledProcessError:  # a process that was killed may still hold what it had
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def kill(self) -> None:
        """End the server and all of its processes at once, as a crash does."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        for pid in [first, *_children(first)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # where nobody reaps the dead process, its locks would keep the next one out
        for lock in (self.folder / "data" / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink()

    def end(self) -> None:
        """Stop it, and remove its folder."""
        with suppress(subprocess.CalledProcessError):  # it was killed
            _as(self.user, self.programs / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


@lru_cache(maxsize=1)
def server() -> Server:
    """The server, started by the first test that asks for it."""
    made = started()
    atexit.register(made.end)
    return made


def started(options: str = QUICK) -> Server:
    """A server that nobody else uses; who asks for it ends it."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if not programs:
        pytest.skip("no PostgreSQL server is installed")
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a socket is short
    folder.chmod(0o755)
    data, bin_folder = folder / "data", programs[-1].parent
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(data, user)
        shutil.chown(folder, user)
    _as(user, bin_folder / "initdb", "-D", data, "-A", "trust", "-U", user, "--no-sync", "-E", "UTF8", "--locale=C")
    made = Server(folder, user, bin_folder)
    made.start(options)
    return made


def _children(first: int) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((process / "stat").read_text().rpartition(") ")[2].split()[1]) == first:
                yield int(process.name)


def _user() -> str:
    if os.geteuid() != 0:
        return getpass.getuser()
    known = {entry.pw_name for entry in pwd.getpwall()}
    found = next((name for name in USERS if name in known), None)
    if found is None or shutil.which("runuser") is None:
        pytest.skip("PostgreSQL refuses to run as root, and nobody else is there to run it")
    return found


def _as(user: str, *words: object) -> None:
    command = [str(word) for word in words]
    if os.geteuid() == 0:
        command = ["runuser", "-u", user, "--", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", timeout=120)
