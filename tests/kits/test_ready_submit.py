"""Which sessions of tests find their jars ready: those whose jars all are, and none finds what it does not name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.ready_submit import started
from tests.sparksession import spark, spark_estate

__all__ = ["spark", "spark_estate"]

READY = {
    "jars": {"a:x:1": ["/j/x.jar", "/j/both.jar"], "a:s3:1": ["/j/both.jar", "/j/s3.jar"], "a:more:1": ["/j/more.jar"]},
    "archives": {"/a/x.jsa": ["a:x:1"], "/a/s3.jsa": ["a:x:1", "a:s3:1"]},
}
OPTIONS = {"SPARK_SUBMIT_OPTS": "-Xms1g", "HOME": "/h"}


def words(packages: str, master: str = "local[2]", *more: str) -> list[str]:
    conf = (f"spark.master={master}", f"spark.jars.packages={packages}", *more)
    return [*(word for one in conf for word in ("--conf", one)), "pyspark-shell"]


@pytest.mark.parametrize(
    ("named", "jars", "archive"),
    [
        ("a:x:1", "/j/x.jar:/j/both.jar", "x"),
        ("a:more:1,a:x:1", "/j/x.jar:/j/both.jar:/j/more.jar", "x"),
        ("a:x:1,a:more:1,a:s3:1", "/j/x.jar:/j/both.jar:/j/s3.jar:/j/more.jar", "s3"),
    ],
)
def test_the_jars_of_what_is_named_are_there_as_the_archive_has_them_and_no_others(
    named: str, jars: str, archive: str
) -> None:
    told, environment = started(words(named), OPTIONS, READY)
    assert told == words("")
    assert environment == {
        "SPARK_SUBMIT_OPTS": f"-Xms1g -XX:SharedArchiveFile=/a/{archive}.jsa",
        "HOME": "/h",
        "SPARK_DIST_CLASSPATH": jars,
    }


def test_without_an_archive_the_jars_are_there() -> None:
    for options in ("-Xms1g -XX:ArchiveClassesAtExit=/a/new.jsa", "-Xms1g"):
        ready = READY if "At" in options else READY | {"archives": {}}
        environment = started(words("a:x:1"), {"SPARK_SUBMIT_OPTS": options}, ready)[1]
        assert environment == {"SPARK_SUBMIT_OPTS": options, "SPARK_DIST_CLASSPATH": "/j/x.jar:/j/both.jar"}


@pytest.mark.parametrize(
    ("given", "environment"),
    [
        (words("a:x:1,b:y:1"), OPTIONS),
        (words(""), OPTIONS),
        (["pyspark-shell"], OPTIONS),
        (words("a:x:1", "spark://here:7077"), OPTIONS),
        (words("a:x:1", "local[2]", "spark.jars.excludes=a:both"), OPTIONS),
        (words("a:x:1"), {}),
        (words("a:x:1"), {"SPARK_SUBMIT_OPTS": ""}),
    ],
    ids=["not ready", "none", "no settings", "a cluster", "without some", "as users run it", "as users run it, told"],
)
def test_all_else_starts_as_users_start_it(given: list[str], environment: dict[str, str]) -> None:
    assert started(given, environment, READY) == (given, environment)


@pytest.mark.spark
def test_the_session_of_tests_takes_its_classes_from_the_archive(spark: Any) -> None:
    """Java passes over one that does not fit, without a word."""
    home = Path(os.environ.get("SPARK_HOME", "/none"))
    if not list(home.glob("*.jsa")):
        pytest.skip("not run by `make test`, or this Java writes no archive")
    engine = spark.sparkContext._gateway.proc.pid
    assert f"{home}/formats.jsa" in Path(f"/proc/{engine}/maps").read_text()
