"""Two runs that start at once, with a jar that this machine has not got yet: Ivy's cache has no locks of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from executors.engine.spark_session import open_session
from executors.engine.version_profiles import installed_profile
from pii_tracer.config.estate_file import Estate
from tests.sparksession import small_spark

pytestmark = pytest.mark.spark

GROUP, MODULE = "example.pii-tracer.starting", "tests.executors.engine.test_starting_together"
HALF = 1 << 20


class Late(SimpleHTTPRequestHandler):
    """A Maven repository that sends its jar when two have asked for it, and ends first with one and then with the
    other; or when nobody else came for a while.
    """

    asked = threading.Barrier(2)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        if self.path.endswith(".jar"):
            with suppress(threading.BrokenBarrierError):
                number = self.asked.wait(15)
                outputfile.write(source.read(HALF))
                time.sleep(1 + number)
        super().copyfile(source, outputfile)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def jar(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Maven coordinates of a jar, and the repository that has it."""
    version = uuid.uuid4().hex
    ivy = Path.home() / installed_profile().ivy
    before = set((ivy / "cache").glob("*.fetched"))
    folder = tmp_path / "repository" / Path(*GROUP.split(".")) / "late" / version
    folder.mkdir(parents=True)
    about = f"<groupId>{GROUP}</groupId><artifactId>late</artifactId><version>{version}</version>"
    (folder / f"late-{version}.pom").write_text(f"<project><modelVersion>4.0.0</modelVersion>{about}</project>")
    with zipfile.ZipFile(folder / f"late-{version}.jar", "w") as written:
        written.writestr("late", os.urandom(2 * HALF))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Late, directory=str(tmp_path / "repository")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"{GROUP}:late:{version}", f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    shutil.rmtree(ivy / "cache" / GROUP, ignore_errors=True)
    for told in set((ivy / "cache").glob("*.fetched")) - before:
        told.unlink()
    for copy in (ivy / "jars").glob(f"{GROUP}_*"):
        copy.unlink()


def test_a_jar_is_fetched_by_one_at_a_time(tmp_path: Path, jar: tuple[str, str]) -> None:
    told = {"version": 1, "estate": "starting", "environment": "local", "catalogs": {}, "roots": [], "lineage": {}}
    told["spark"] = small_spark(
        {
            "spark.jars.packages": ",".join((*installed_profile().packages, jar[0])),
            "spark.jars.repositories": jar[1],
        }
    )
    told["subjects"] = [{"name": "customer", "source": "s.t", "key": "uid"}]
    (tmp_path / "estate.json").write_text(Estate.model_validate(told).model_dump_json())
    begun = [
        subprocess.Popen([sys.executable, "-m", MODULE, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(run.communicate(timeout=200)[1], run.returncode) for run in begun]
    assert [code for _, code in ended] == [0, 0], ended


if __name__ == "__main__":
    base = Path(sys.argv[1])
    open_session(Estate.model_validate_json((base / "estate.json").read_text()), base).stop()
