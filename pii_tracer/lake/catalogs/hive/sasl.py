"""Kerberos on a connection of Thrift: SASL's mechanism GSSAPI (RFC 4752) in Thrift's frames
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-sasl-spec.txt).

Of what the server offers, the strongest protection is taken: encrypted, else signed, else neither.
"""

from __future__ import annotations

import struct
from typing import Any

from pii_tracer.common.kerberos import Handshake, NoTicket

_START, _OK, _COMPLETE = 1, 2, 5
_MECHANISM = b"GSSAPI"
_PLAIN, _SIGNED, _ENCRYPTED = 1, 2, 4
_LARGEST_SAID = 1 << 20
"""Bytes of a message before the two agree."""
_LARGEST = 1 << 29
"""Bytes of a frame afterwards."""
_MINE = 0xFFFFFF
"""Bytes of a protected frame that the server may send."""


class SaslTransport:
    """What Thrift's protocols read and write. socket: of Thrift, open."""

    def __init__(self, socket: Any, shake: Handshake) -> None:
        self._socket = socket
        self._shake = shake
        self._layer = _PLAIN
        self._piece = _LARGEST
        self._read = b""
        self._written = bytearray()

    def negotiate(self) -> None:
        """Show who both are, and agree on a protection.

        Raises:
            NoTicket: the metastore refuses the ticket, or does not prove itself.
        """
        self._say(_START, _MECHANISM)
        self._say(_OK, self._shake.step())
        agreed = False
        while True:
            status, said = self._said()
            if status == _COMPLETE and agreed:
                return
            if status != _OK or agreed:
                raise NoTicket("NotTaken", "compare principal, service, realm and clocks with the metastore's log")
            if not self._shake.proved:
                self._say(_OK, self._shake.step(said))
            else:
                self._say(_OK, self._shake.wrap(self._choice(self._shake.unwrap(said)), encrypt=False))
                agreed = True

    def _choice(self, offer: bytes) -> bytes:
        if len(offer) != 4 or not offer[0] & (_PLAIN | _SIGNED | _ENCRYPTED):
            raise NoTicket("NoProtection", "check `hadoop.rpc.protection` of the metastore")
        self._layer = next(layer for layer in (_ENCRYPTED, _SIGNED, _PLAIN) if offer[0] & layer)
        if self._layer != _PLAIN:
            most = int.from_bytes(offer[1:], "big")
            self._piece = self._shake.fits(most, encrypt=self._layer == _ENCRYPTED)
        return bytes([self._layer]) + (b"\0\0\0" if self._layer == _PLAIN else _MINE.to_bytes(3, "big"))

    def _say(self, status: int, message: bytes) -> None:
        self._socket.write(struct.pack(">BI", status, len(message)) + message)
        self._socket.flush()

    def _said(self) -> tuple[int, bytes]:
        status, size = struct.unpack(">BI", self._whole(5))
        if size > _LARGEST_SAID:
            raise NoTicket("NoSasl", "check whether the metastore uses Kerberos (`hive.metastore.sasl.enabled`)")
        return status, self._whole(size)

    def _whole(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            found += self._socket.read(size - len(found))  # raises at the end of the connection
        return bytes(found)

    def isOpen(self) -> bool:
        return bool(self._socket.isOpen())

    def close(self) -> None:
        self._socket.close()

    def read(self, size: int) -> bytes:
        """At most so many bytes."""
        while not self._read:
            (length,) = struct.unpack(">I", self._whole(4))
            if length > _LARGEST:
                raise EOFError("a frame without an end")
            frame = self._whole(length)
            self._read = frame if self._layer == _PLAIN else self._shake.unwrap(frame)
        found, self._read = self._read[:size], self._read[size:]
        return found

    def readAll(self, size: int) -> bytes:
        """So many bytes."""
        found = bytearray()
        while len(found) < size:
            found += self.read(size - len(found))
        return bytes(found)

    def write(self, data: bytes) -> None:
        self._written += data

    def flush(self) -> None:
        """Send what was written, in as many frames as it needs."""
        data, self._written = bytes(self._written), bytearray()
        for start in range(0, len(data), self._piece):
            frame = data[start : start + self._piece]
            if self._layer != _PLAIN:
                frame = self._shake.wrap(frame, encrypt=self._layer == _ENCRYPTED)
            self._socket.write(struct.pack(">I", len(frame)) + frame)
        self._socket.flush()
