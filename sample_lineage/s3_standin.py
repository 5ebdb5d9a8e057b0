"""A stand-in for S3 on this machine, for the demo and the tests: moto behind a shim that is as strict as S3.

moto alone is too kind, and a test against it would prove nothing. The shim adds what S3 does:

- replication of new versions to the buckets that the rules name, never of version deletes
  (https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-what-is-isnot-replicated.html);
- restores that take time and lapse, and archived objects that cannot be read until then
  (https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html);
- at most 1,000 keys in one DeleteObjects, a request id on every answer.

State is in memory of one process that binds to 127.0.0.1 only, needs no credentials and ends by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.client
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sample_lineage.s3_multipart import StrictUploads
from sample_lineage.s3_strict import ADVANCE, AGE, ALIVE, StrictS3

READY_FILE = "s3-standin.json"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Standin:
    """A running stand-in."""

    endpoint_url: str
    pid: int


def demo_credentials() -> dict[str, str]:
    """Environment variables with credentials that open nothing but the stand-in."""
    return {
        "AWS_ACCESS_KEY_ID": "standin",
        "AWS_SECRET_ACCESS_KEY": "standin",
        "AWS_SESSION_TOKEN": "standin",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def serve(port: int, ready_file: Path, max_seconds: float, shim: StrictS3) -> None:
    """Serve until `max_seconds` are over or SIGTERM comes; write port and pid to `ready_file` when up."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", port, shim, threaded=True, request_handler=MotoRequestHandler)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    timer = threading.Timer(max_seconds, server.shutdown)
    timer.daemon = True
    timer.start()
    partial = ready_file.with_name(ready_file.name + ".partial")
    partial.write_text(json.dumps({"port": server.server_port, "pid": os.getpid()}), encoding="utf-8")
    partial.replace(ready_file)
    server.serve_forever()


def start(
    folder: Path,
    *,
    restore_seconds: float = 2.0,
    replication_seconds: float = 0.0,
    max_seconds: float = 7200.0,
    wait_seconds: float = 60.0,
) -> Standin:
    """Start a stand-in that outlives its parent, or get the one that runs for this folder.

    Raises:
        RuntimeError: it did not come up within `wait_seconds`; its log lies in the folder.
    """
    known = running(folder)
    if known is not None:
        return known
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / READY_FILE
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "sample_lineage.s3_standin", "--port", "0", "--ready-file", str(ready.absolute())]
    command += ["--max-seconds", str(max_seconds), "--restore-seconds", str(restore_seconds)]
    command += ["--replication-seconds", str(replication_seconds)]
    roots = [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    with (folder / "s3-standin.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(root for root in roots if root)},
        )
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline and process.poll() is None:
        found = running(folder)
        if found is not None:
            return found
        time.sleep(0.1)
    if process.poll() is None:
        process.kill()
        process.wait()
    raise RuntimeError(f"the S3 stand-in did not start; its log is {folder / 's3-standin.log'}")


def running(folder: Path) -> Standin | None:
    """The stand-in that was started for this folder, if it still answers and is the process it says."""
    try:
        told = json.loads((folder / READY_FILE).read_text(encoding="utf-8"))
        endpoint = f"http://127.0.0.1:{int(told['port'])}"
        with _OPENER.open(endpoint + ALIVE, timeout=5) as answer:
            alive = json.load(answer)
    except (OSError, ValueError, KeyError, http.client.HTTPException):
        return None
    return Standin(endpoint, int(told["pid"])) if alive == {"pid": told["pid"]} else None


def advance(endpoint_url: str, seconds: float) -> None:
    """Set the clock of the stand-in there forward: restores become ready and lapse, replicas arrive."""
    with _OPENER.open(f"{endpoint_url}{ADVANCE}?seconds={seconds}", timeout=60) as answer:
        answer.read()


def age(endpoint_url: str, seconds: float) -> None:
    """All objects there look as if they had been written so much earlier; nothing else changes."""
    with _OPENER.open(f"{endpoint_url}{AGE}?seconds={seconds}", timeout=60) as answer:
        answer.read()


def stop(standin: Standin, wait_seconds: float = 10.0) -> None:
    """End a stand-in. Call it with what `start` or `running` returned just now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(standin.pid, signal.SIGTERM)
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline:
        # reap it where it is our own child; a process that is gone answers no signal
        with contextlib.suppress(ChildProcessError):
            os.waitpid(standin.pid, os.WNOHANG)
        try:
            os.kill(standin.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def main(argv: list[str] | None = None) -> None:
    """Command line of the stand-in process."""
    parser = argparse.ArgumentParser(prog="python -m sample_lineage.s3_standin", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--max-seconds", type=float, default=7200.0)
    parser.add_argument("--restore-seconds", type=float, default=2.0)
    parser.add_argument("--replication-seconds", type=float, default=0.0)
    options = parser.parse_args(argv)
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    class Dispatcher(DomainDispatcherApplication):
        @functools.cache  # noqa: B019 - there is one, as long as the process
        def get_backend_for_host(self, host: str | None) -> Any:
            # Moto looks through the folders of all services for each request: a sixth of the time of one
            return super().get_backend_for_host(host)

    shim = StrictS3(
        StrictUploads(Dispatcher(create_backend_app)),
        restore_seconds=options.restore_seconds,
        replication_seconds=options.replication_seconds,
    )
    serve(options.port, options.ready_file, options.max_seconds, shim)


if __name__ == "__main__":
    main()
