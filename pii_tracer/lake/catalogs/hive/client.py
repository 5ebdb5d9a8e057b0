"""The metastore's Thrift client, which PyIceberg brings, with time limits and one new connection where one breaks.

https://github.com/apache/hive/blob/rel/release-2.3.9/metastore/if/hive_metastore.thrift
"""

from __future__ import annotations

import importlib.util
import logging
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import Self

from pii_tracer.lake.catalogs.hive.security import OPEN, Security
from pii_tracer.model.errors import EstateError

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
_PORT = 9083


class Metastore:
    """One metastore. uri: `thrift://HOST:PORT`, or several with commas between, of which the first that answers counts.

    A server that is silent is asked no second time: every further question fails at once.
    """

    def __init__(self, uri: str, security: Security = OPEN) -> None:
        """Raises `EstateError`: the client library is not installed."""
        if importlib.util.find_spec("thrift") is None:
            raise EstateError(
                "the estate file names a Hive metastore, but its client is not installed",
                todo="run `pip install 'pii-tracer[hive]'`",
            )
        # its own words about a refused connection would stand between the lines of ours
        logging.getLogger("thrift").addHandler(logging.NullHandler())
        self._places = [(part.hostname, part.port or _PORT) for part in map(urlsplit, uri.split(","))]
        self.security = security
        self._transport: Any = None
        self._client: Any = None
        self._silent: Exception | None = None

    def ask(self, method: str, *arguments: Any) -> Any:
        """What a method of the metastore's answers. A connection that broke is made anew, once; an answer that cannot
        be read ends the connection, since what is left of it would be taken for the next answer.

        Raises:
            Exception: what the metastore throws, or the client, or the socket.
        """
        if self._silent:
            raise self._silent
        try:
            return self._asked(method, arguments)
        except Exception as error:
            if _is_answer(error):
                raise
            self.close()
            if not _broken(error):
                raise
        try:
            return self._asked(method, arguments)
        except Exception as error:
            if _broken(error):
                self._silent = error
            if not _is_answer(error):
                self.close()
            raise

    @property
    def silent(self) -> bool:
        """Whether it is asked no more."""
        return self._silent is not None

    def _asked(self, method: str, arguments: tuple[Any, ...]) -> Any:
        if self._client is None:
            self._connect()
        return getattr(self._client, method)(*arguments)

    def _connect(self) -> None:
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TTransportException

        for place in self._places:
            self._transport = socket = TSocket(*place)
            socket.setTimeout(CONNECT_SECONDS * 1000)
            try:
                socket.open()
            except TTransportException as error:
                refused = error
                continue
            self._transport = self.security.transport(socket, str(place[0]))
            socket.setTimeout(ANSWER_SECONDS * 1000)
            self._client = Client(TBinaryProtocol(self._transport))
            return
        raise refused

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # no generator's `contextmanager`: what the metastore throws cannot be changed, not even by `contextlib`
        self.close()

    def close(self) -> None:
        """End the connection; asking again makes a new one."""
        if self._transport is not None:
            with suppress(OSError):
                self._transport.close()
        self._client = self._transport = None


def _broken(error: Exception) -> bool:
    """Whether a connection cannot be made, or has ended."""
    from thrift.transport.TTransport import TTransportException

    return isinstance(error, (TTransportException, OSError, EOFError))


def _is_answer(error: Exception) -> bool:
    """Whether the metastore has thrown it, which leaves the connection whole."""
    from hive_metastore import ttypes
    from thrift.Thrift import TApplicationException

    return isinstance(error, TApplicationException) or type(error).__module__ == ttypes.__name__


def is_unknown_method(error: Exception) -> bool:
    """Whether a metastore says that it is too old, or too new, for a method."""
    from thrift.Thrift import TApplicationException

    return isinstance(error, TApplicationException) and bool(error.type == TApplicationException.UNKNOWN_METHOD)
