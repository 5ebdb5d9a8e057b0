"""Sessions on a Spark Connect server: what is ours to set, what its owner must have set, and what cannot be done there.

https://spark.apache.org/docs/3.5.7/spark-connect-overview.html
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from executors.formats.registry import support_for
from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.plan import Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SET = "spark.pii-tracer.settings"
"""A digest of the settings that a session was given: a server forgets sessions that are idle for an hour."""

_PORT = 15002
_PATIENCE = 10.0
"""Seconds."""

_EVENT_LOG = "spark.eventLog.enabled"
"""A whole run was seen to leave a person's key or address in it."""

EXTENSIONS = "spark.sql.extensions"
REDACTION = "spark.redaction.regex"


def open_remote(address: str, version: str, needed: Mapping[str, str], settings: Mapping[str, str]) -> SparkSession:
    """The session of this process on a Connect server, with these settings.

    version: how the server's Spark has to begin. needed: what the server has to have been started with.

    Raises:
        RunError: a package is missing here, the server does not answer, has another Spark, lacks a setting or refuses
            one.
    """
    missing = missing_packages()
    if missing:
        raise RunError(
            f"Spark Connect needs the packages {', '.join(missing)}", todo="run `pip install 'pii-tracer[connect]'`"
        )
    _knock(address)
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.remote(address).getOrCreate()
        there, digest = spark.version, spark.conf.get(_SET, "")
    except Exception as error:  # grpc's and Spark's errors are many
        raise RunError(
            f"the Spark Connect server does not answer: {type(error).__name__}",
            where=address,
            todo="start the server, or correct `spark.remote` in the estate file",
        ) from None
    wanted = _digest(settings)
    if digest == wanted:
        return spark
    if not there.startswith(version + "."):
        raise RunError(
            f"the server runs Spark {there}, but the estate file needs {version}",
            where=address,
            todo="use a server of that version (docs/stack.md)",
        )
    _compare(spark, needed, address)
    for key, value in settings.items():
        _set(spark, key, value, address)
    spark.conf.set(_SET, wanted)
    return spark


def _knock(address: str) -> None:
    """Whether anybody listens: PySpark itself would try again for minutes.

    Raises:
        RunError: nobody does.
    """
    place = urlsplit(address)
    try:
        socket.create_connection((place.hostname or "", place.port or _PORT), _PATIENCE).close()
    except (OSError, ValueError) as error:
        raise RunError(
            f"the Spark Connect server does not answer: {type(error).__name__}",
            where=address,
            todo="start the server, or correct `spark.remote` in the estate file",
        ) from None


def missing_packages() -> tuple[str, ...]:
    """What PySpark needs for Spark Connect and is not installed here."""
    return tuple(name for name in ("grpc", "grpc_status", "pandas") if importlib.util.find_spec(name) is None)


def _digest(conf: Mapping[str, str]) -> str:
    """Settings may hold a catalog's credential, which does not go into the marker."""
    return hashlib.sha256(json.dumps(sorted(conf.items())).encode()).hexdigest()


def _compare(spark: SparkSession, needed: Mapping[str, str], address: str) -> None:
    """Whether the server has what only its owner can set, and no event log. Of extensions it may have more."""
    if str(spark.conf.get(_EVENT_LOG, "false")).lower() == "true":
        raise RunError(
            "the server writes an event log, which would contain values of persons",
            where=address,
            todo=f"start the server with {_EVENT_LOG}=false",
        )
    for key, value in needed.items():
        has = str(spark.conf.get(key, ""))
        there = {name.strip() for name in has.split(",")} if key == EXTENSIONS else {has}
        lacking = set(value.split(",") if key == EXTENSIONS else [value]) - there
        if lacking:
            raise RunError(
                f"the server was started without the value of {key} that this estate needs",
                where=address,
                todo=f"start the server with {key}={value}, and with the jars in docs/stack.md",
            )


def _set(spark: SparkSession, key: str, value: str, address: str) -> None:
    try:
        spark.conf.set(key, value)
    except Exception as error:
        raise RunError(
            f"the server does not let a session set {key}: {type(error).__name__}",
            where=address,
            todo="remove the setting from `spark.conf` in the estate file, and ask the server's owner to set it",
        ) from None


def refuse_without_jvm(remote: str | None, steps: Iterable[Step]) -> None:
    """To be asked before the first step of a run: whether a step needs more than a Connect server lets others do.

    Raises:
        Refused: its format says that only the engine's Java interface can do it.
    """
    if remote is None:
        return
    for step in steps:
        support = support_for(step.action)
        if support is not None and (why := support.needs_jvm(step)):
            raise Refused(
                f"this step cannot be done over Spark Connect: {why}",
                where=f"{step.id} {step.parameters.get('table') or step.parameters.get('location')}",
                todo="remove `remote` from the estate file, set a `master`, then plan again; nothing was changed",
            )
