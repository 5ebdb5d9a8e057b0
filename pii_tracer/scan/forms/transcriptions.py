"""Writings of a value in other alphabets and code pages, each of which is a pattern: nothing has to be decoded.

Of encodings that take several bytes together, the characters that stand for the value wherever it lies in them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

from pii_tracer.scan.value_encodings import SHORT_BASE64, base64_cores, json_escaped

LEAST = 8
"""Fewer characters would be found by chance."""
MAINFRAME = ("cp037", "cp500")
JOINTS = (",", ", ")
"""What stands between the bytes of a value in a list of numbers."""
DIGEST_JOINTS = (":", " ")
TELLING = 10
"""Bytes of a digest that are not met by chance."""


def of_text(value: str) -> Iterator[str]:
    """Writings that are text and are looked for in any case."""
    for text in dict.fromkeys((value, value.lower())):
        data = text.encode()
        for joint in JOINTS:  # `String.fromCharCode(…)`, arrays of bytes
            yield joint.join(str(byte) for byte in data)
        yield ", ".join(f"0x{byte:02x}" for byte in data)
        for offset in range(5):
            encoded = base64.b32encode(bytes(offset) + data).rstrip(b"=")
            core = encoded[-(-offset * 8 // 5) : (offset + len(data)) * 8 // 5]
            if len(core) >= LEAST:
                yield core.decode()
    if not value.isascii():
        yield value.encode("utf-7").decode()
        yield from (_bytes_escaped(value, style) for style in ("\\x{:02x}", "\\\\x{:02x}", "\\{:03o}", "\\\\{:03o}"))
    yield value.encode("utf-7").decode().replace("@", "+AEA-")
    yield from domains(value)


def _bytes_escaped(value: str, style: str) -> str:
    """As Python shows bytes, and as git and C write names: escapes for what is no ASCII alone."""
    return "".join(c if c.isascii() else "".join(style.format(byte) for byte in c.encode()) for c in value)


def domains(value: str) -> Iterator[str]:
    """An address with its domain in ASCII or in letters of its own (RFC 3490), the one that the value has not."""
    name, at, domain = value.rpartition("@")
    try:
        for other in (domain.encode("idna").decode(), domain.encode("ascii", "ignore").decode("idna")) if at else ():
            if other and other.lower() != domain.lower():
                yield f"{name}@{other}"
    except UnicodeError:
        return


def wide(value: str) -> bytes:
    """UTF-32: the bytes that both byte orders have."""
    return value.encode("utf-32-le")[:-3] if value.isascii() else value.encode("utf-32-le")


def of_bytes(value: str) -> Iterator[bytes]:
    """Writings that are looked for as they are: base85 in its alphabets, uuencode, yEnc, EBCDIC."""
    for text in dict.fromkeys((value, value.lower())):
        data = text.encode()
        for encode in (base64.a85encode, base64.b85encode):
            yield from _in_fives(data, encode)
        yield from _uuencoded(data)
        yield bytes((byte + 42) % 256 for byte in data)
    for text in dict.fromkeys((value, value.lower(), value.upper())):
        for page in MAINFRAME:
            try:
                yield text.encode(page)
            except UnicodeEncodeError:
                continue
    if not value.isascii():
        yield value.encode("utf-32-be")


def _in_fives(data: bytes, encode: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Five characters stand for four bytes: those groups that lie in the value as a whole."""
    for offset in range(4):
        inside = data[offset : offset + (len(data) - offset) // 4 * 4]
        if len(inside) >= LEAST:
            yield encode(inside)


def _uuencoded(data: bytes) -> Iterator[bytes]:
    for offset in range(3):
        whole = bytes(offset) + data
        line = b"".join(binascii.b2a_uu(whole[at : at + 45])[1:-1] for at in range(0, len(whole), 45))
        core = line[(0, 2, 3)[offset] : len(whole) * 8 // 6]
        if len(core) >= SHORT_BASE64:
            yield core
            yield core.replace(b" ", b"`")


def base64_of_base64(value: str) -> Iterator[bytes]:
    """Base64 of a text that holds base64 of the value, and of JSON in which letters are escaped."""
    for core in base64_cores(value.encode()):
        yield from base64_cores(core)
    for text in set(json_escaped(value)) - {value} if not value.isascii() else ():
        yield from base64_cores(text.encode())


def digest_in_pieces(digest: bytes) -> Iterator[str]:
    """The beginning of a digest in hex as fingerprints are shown: `ab:cd:…`, `AB CD …`."""
    yield from (digest[:TELLING].hex(joint) for joint in DIGEST_JOINTS)
