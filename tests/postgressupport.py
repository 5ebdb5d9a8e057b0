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
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
    """The server. folder: its socket. user: of the operating system and of the database."""

    folder: Path
    user: str
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


@lru_cache(maxsize=1)
def server() -> Server:
    """The server, started by the first test that asks for it."""
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
    _as(user, bin_folder / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", f"{QUICK} -k {folder}", "start")
    atexit.register(_end, user, bin_folder / "pg_ctl", folder)
    return Server(folder, user)


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


def _end(user: str, program: Path, folder: Path) -> None:
    _as(user, program, "-D", folder / "data", "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)
