"""TPC-DS queries and schemas as sqlglot's own tests have them: fetched with pip, never part of this project."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path


def fetched(cache: Path) -> Path:
    """The source distribution of the sqlglot that is installed, downloaded once."""
    cache.mkdir(parents=True, exist_ok=True)
    wanted = f"sqlglot-{version('sqlglot')}.tar.gz"
    if not (cache / wanted).exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--dest", str(cache), f"sqlglot=={version('sqlglot')}"], check=True)
    return cache / wanted


def read(archive: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The queries, and the columns of each table."""
    queries = _text(archive, "tests/fixtures/optimizer/tpc-ds/tpc-ds.sql")
    lines = [line for line in queries.splitlines() if not line.startswith(("--", "# "))]
    texts = [text.strip() for text in "\n".join(lines).split(";")]
    # each query is followed by the optimised form that sqlglot's tests expect
    return texts[:-1:2], _schemas(_text(archive, "tests/helpers.py"))


def _text(archive: Path, ending: str) -> str:
    with tarfile.open(archive) as files:
        name = next(n for n in files.getnames() if n.endswith("/" + ending))
        stream = files.extractfile(name)
        if stream is None:
            raise FileNotFoundError(ending)
        return stream.read().decode()


def _schemas(helpers: str) -> dict[str, list[str]]:
    """The literal `TPCDS_SCHEMA`; nothing of the file is run."""
    for node in ast.parse(helpers).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "TPCDS_SCHEMA"
        ):
            return {table: list(columns) for table, columns in ast.literal_eval(node.value).items()}
    raise LookupError("sqlglot's tests have no TPCDS_SCHEMA any more")
