"""A session of HiveServer2. No statement has a value of a person in it: Hive keeps statements in logs and history."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typing_extensions import Self

from pii_tracer.config.catalogs import HiveServer2
from pii_tracer.lake.catalogs.base import secret
from pii_tracer.model.errors import RunError

_ANSWER_SECONDS = 600
"""For one answer. While a statement runs, the server is asked again and again, and it runs as long as it takes."""
_CODE = re.compile(r"\[Error (\d+)\]|return code (\d+)")
_SETTINGS = ("hive.auto.convert.join=false",)
"""Otherwise a local task of the server writes the keys into a file of its own."""


class HiveSession:
    """One session, for a block. Its temporary tables go with it."""

    def __init__(self, catalog: str, server: HiveServer2) -> None:
        """catalog: its key in the estate file."""
        self._server = server
        self._where = f"{server.host}:{server.port}"
        self._password = secret(catalog, "HIVESERVER2_PASSWORD")
        self._connection: Any = None
        self._cursor: Any = None

    def __enter__(self) -> Self:
        if importlib.util.find_spec("impala") is None:
            raise RunError(
                "the estate file names a HiveServer2, but its client is not installed",
                todo="run `pip install 'pii-tracer[hiveserver2]'`",
            )
        from impala.dbapi import connect

        server = self._server
        try:
            # a server without authentication takes any password, and its protocol wants one
            self._connection = connect(
                host=server.host,
                port=server.port,
                user=server.user,
                password=self._password or "none",
                auth_mechanism="PLAIN",
                timeout=_ANSWER_SECONDS,
            )
            self._cursor = self._connection.cursor()
        except Exception as error:  # of several families
            self._end()
            raise RunError(
                f"HiveServer2 does not answer ({type(error).__name__})",
                where=self._where,
                todo="correct `hiveserver2` of the catalog or the password, then run `pii-tracer resume`",
            ) from None
        for setting in _SETTINGS:
            self.run(f"SET {setting}")
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, statement: str) -> None:
        """A statement without an answer.

        Raises:
            RunError: Hive refuses it, or it failed. What Hive says of it may quote rows, and is left out.
        """
        with self._refusals():
            self._cursor.execute(statement)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of several families
            found = _CODE.search(str(error))
            code = f", error {found[1] or found[2]}" if found else ""
            raise RunError(
                f"Hive did not run a statement ({type(error).__name__}{code})",
                where=self._where,
                todo=(
                    "find the reason in the log of HiveServer2 (such as a missing right), then run `pii-tracer resume`"
                ),
            ) from None

    def number(self, query: str) -> int:
        """The one number that a query gives. Raises as `run`."""
        self.run(query)
        with self._refusals():
            return int(self._cursor.fetchone()[0])

    def _end(self) -> None:
        for one in (self._cursor, self._connection):
            try:
                if one is not None:
                    one.close()
            except Exception:  # noqa: S110 - it is over, whatever the server says
                pass
        self._cursor = self._connection = None
