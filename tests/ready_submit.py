"""`spark-submit` of test sessions: the jars of `spark.jars.packages` lie ready, and Java has parsed their classes before.

`python -m tests.class_archive --ready FOLDER` puts this file there as `bin/spark-submit`, which PySpark starts when `SPARK_HOME`
names the folder. Naively each start of Spark has Ivy resolve the same coordinates, copies hundreds of megabytes of jars twice,
and loads their classes by a class loader that Java's archives of classes serve in part.

The class path of a local session gets the jars of the coordinates that the session names, behind those of Spark: what a
session forgets to name, it does not find here either. Coordinates that are not ready, and all else, go to Spark's own
`spark-submit` as they came; so does everything where `SPARK_SUBMIT_OPTS` is empty.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

PACKAGES, EXCLUDES = "spark.jars.packages", "spark.jars.excludes"
OPTIONS, MAKING = "SPARK_SUBMIT_OPTS", "-XX:ArchiveClassesAtExit="


def started(
    words: Sequence[str], environment: Mapping[str, str], ready: Mapping[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """The words and the environment for Spark's own script. ready: as `ready.json` has it."""
    given = [word.partition("=") for before, word in pairwise(words) if before == "--conf"]
    conf = {name: value for name, _, value in given}
    wanted = {one for one in conf.get(PACKAGES, "").split(",") if one}
    options = environment.get(OPTIONS, "")
    fit = options and conf.get("spark.master", "").startswith("local") and EXCLUDES not in conf
    if not fit or not wanted or not wanted <= set(ready["jars"]):
        return list(words), dict(environment)
    jars = dict.fromkeys(jar for one, files in ready["jars"].items() if one in wanted for jar in files)
    fitting = [file for file, of in ready["archives"].items() if set(of) <= wanted]
    if fitting and MAKING not in options:
        options += f" -XX:SharedArchiveFile={fitting[-1]}"
    named = f"{PACKAGES}={conf[PACKAGES]}"
    told = [f"{PACKAGES}=" if word == named else word for word in words]
    return told, {**environment, OPTIONS: options, "SPARK_DIST_CLASSPATH": ":".join(jars)}


def main(words: Sequence[str]) -> None:
    ready = json.loads((Path(__file__).parent.parent / "ready.json").read_bytes())
    ready["jars"] = {one: files for one, files in ready["jars"].items() if all(map(os.path.exists, files))}
    words, environment = started(words, os.environ, ready)
    environment["SPARK_HOME"] = ready["home"]
    own = f"{ready['home']}/bin/spark-submit"
    os.execve(own, [own, *words], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
