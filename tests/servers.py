"""Servers that tests start: their jars, fetched once by the Ivy that Spark brings, and how they end."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer

from executors.engine.java_and_spark_paths import java as own_java
from executors.engine.java_and_spark_paths import spark_jars

__all__ = [
    "PROMPT_HDFS",
    "Json",
    "Kept",
    "answering",
    "arrives",
    "cache",
    "end",
    "free_ports",
    "fresh_folder",
    "own_java",
    "retrieved",
    "served",
    "spark_jars",
]

PROMPT_HDFS = {"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10"}
"""Who ends a file a moment before the DataNode has reported its last block waits so long, and by default 400 ms."""


_PORTS = range(20_000, 32_000)
"""Below those that the system gives to connections, which could take one between its choice and its use."""


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on, each given to one test process of this machine alone.

    A file has the last one that was given: of two processes that choose at the same time, none gets the other's.
    """
    found: list[int] = []
    with (Path(tempfile.gettempdir()) / f"pii-tracer-ports-{os.getuid()}").open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        last = int(file.read() or random.choice(_PORTS))
        for _ in _PORTS:
            if len(found) == count:
                break
            last = _PORTS[(last + 1 - _PORTS.start) % len(_PORTS)]
            with socket.socket() as one, suppress(OSError):
                one.bind(("127.0.0.1", last))
                found.append(last)
        file.truncate(0)
        file.write(str(last))
    return found


@contextmanager
def served(server: BaseServer) -> Iterator[None]:
    """Answers requests in a thread of its own; ended and closed afterwards, whatever happens."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Kept(BaseHTTPRequestHandler):
    """What answers on connections that clients keep, and prints nothing.

    Headers and body are sent one after the other. Naively, the system holds the second back until the client has
    acknowledged the first, which takes it 40 ms at each answer.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Nothing between the lines of a test."""


class Json(BaseHTTPRequestHandler):
    """A server of JSON for `answering`, which says nothing of what it is asked."""

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering(handler: type[Json]) -> Iterator[str]:
    """Such a server on loopback; gives its URI."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}"


def cache() -> Path:
    """Where what is fetched stays, beside Spark's own jars."""
    folder = Path(os.environ.get("PII_TRACER_IVY") or Path.home() / ".ivy2")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fresh_folder(name: str) -> Path:
    """A new folder in the cache, to be filled by `arrives`."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=cache()))


def arrives(fresh: Path, folder: Path, command: list[str]) -> Path:
    """Run what fills a fresh folder, and put it in its place in one go; returns the place."""
    try:
        subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL)
        shutil.rmtree(fresh / "cache", ignore_errors=True)
        fresh.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was faster
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def retrieved(name: str, version: str, *, ivy: str = "", dependency: Sequence[str] = (), shared: bool = True) -> Path:
    """The folder with jars; fetched through Ivy's own client when it is not there.

    ivy: text of an `ivy.xml`; dependency: or one artifact, as organisation, name and revision. shared: by Ivy's cache;
    without it, a large jar does not lie there a second time.
    """
    folder = cache() / f"{name}-{version}"
    with (cache() / "retrieving.lock").open("w") as lock:  # Ivy's cache does not bear two processes that fill it
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder if folder.is_dir() else _retrieved(folder, name, ivy, dependency, shared=shared)


def _retrieved(folder: Path, name: str, ivy: str, dependency: Sequence[str], *, shared: bool) -> Path:
    client = next(spark_jars().glob("ivy-*.jar"))
    fresh = fresh_folder(name)
    words = ["-dependency", *dependency]
    if ivy:
        (fresh / "ivy.xml").write_text(ivy, encoding="utf-8")
        words = ["-ivy", str(fresh / "ivy.xml")]
    pattern = f"{fresh}/[artifact]-[revision](-[classifier]).[ext]"
    common = [
        "-cache",
        str((cache() if shared else fresh) / "cache"),
        "-confs",
        "default",
        "-warn",
        "-retrieve",
        pattern,
    ]
    return arrives(fresh, folder, [own_java(), "-jar", str(client), *words, *common])


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a server to end, and end it where it does not."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
