"""Hadoop's S3A with what it needs, out of the cache that Spark fetches its jars into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from executors.engine.version_profiles import installed_profile
from tests.servers import cache

_FETCH = "from executors.engine.spark_session import fetch_jars; fetch_jars(stores=['s3'])"


def s3a_jars() -> list[Path]:
    """S3A's jars and AWS's; fetched by Spark in a process of its own when they are not there."""
    wanted = [f"{group}_{name}-{version}.jar" for group, name, version in _coordinates()]
    folder = cache() / "jars"
    if not all((folder / name).exists() for name in wanted):
        subprocess.run([sys.executable, "-c", _FETCH], check=True, cwd=Path(__file__).parents[1], env={**os.environ})
    return [folder / name for name in wanted]


def _coordinates() -> list[list[str]]:
    return [package.split(":") for package in (*installed_profile().s3a, "com.amazonaws:aws-java-sdk-bundle:1.12.262")]
