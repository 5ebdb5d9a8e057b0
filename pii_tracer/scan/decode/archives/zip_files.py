"""ZIP archives, and what is one inside: spreadsheets and documents of Office, `.npz`, `.jar`.

Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT. Members are those of the central directory; what it
does not name (updated archives keep former members) is a part by itself.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator

from pii_tracer.scan.decode.compressed_streams import PackedError, stream_of
from pii_tracer.scan.decode.file_kind import FileKind, Part

_MEMBER, _END = b"PK\x03\x04", b"PK\x05\x06"
_HEADER, _CLOSING = 30, 22
_DESCRIPTOR = 24
"""The most bytes that stand behind a member whose size was not known before."""
_PIECE = 1 << 20
_MARKED = {zipfile.ZIP_BZIP2: b"BZh", 93: b"\x28\xb5\x2f\xfd", 95: b"\xfd7zXZ\0"}
"""Methods whose streams are files of their own."""


def _fits(data: memoryview) -> bool:
    if bytes(data[:4]) in (_MEMBER, _END):
        return True
    # programs that unpack themselves have the archive at their end
    return _END in bytes(data[-(1 << 16) - 22 :]) and zipfile.is_zipfile(stream_of(data))


def parts(data: memoryview) -> Iterator[Part]:
    """Headers, members and what lies between them.

    Raises:
        PackedError: cut short, or of an impossible layout.
    """
    try:
        with zipfile.ZipFile(stream_of(data)) as archive:
            members = sorted(archive.infolist(), key=lambda member: member.header_offset)
            directory = archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise PackedError("a ZIP archive whose directory cannot be read") from None
    position, described = 0, False
    for member in members:
        start, head = member.header_offset, bytes(data[member.header_offset : member.header_offset + _HEADER])
        if head[:4] != _MEMBER or start < position or len(head) != _HEADER:
            raise PackedError("members of a ZIP archive overlap or are truncated")
        yield from _gap(data[position:start], described=described)
        body = start + _HEADER + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        position = body + member.compress_size
        if position > directory:
            raise PackedError("members of a ZIP archive overlap or are truncated")
        yield Part("", (data[start:body],), own=True)
        yield from _member(member, data[body:position])
        described = bool(member.flag_bits & 8)
    yield from _gap(data[position:directory], described=described)
    end = directory + bytes(data[directory:]).rindex(_END)
    end += _CLOSING + int.from_bytes(data[end + _CLOSING - 2 : end + _CLOSING], "little")
    yield Part("", (data[directory:end],), own=True)
    yield from _gap(data[end:], described=False)


def _gap(data: memoryview, *, described: bool) -> Iterator[Part]:
    if len(data):
        yield Part("", (data,), own=described and len(data) <= _DESCRIPTOR)


def _member(member: zipfile.ZipInfo, body: memoryview) -> Iterator[Part]:
    if member.flag_bits & 1:
        yield Part(member.filename, _refused("encrypted"))
    elif member.compress_type == zipfile.ZIP_STORED:
        yield Part(member.filename, (body,))
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        behind: list[bytes] = []
        yield Part(member.filename, _inflated(member, body, behind))
        yield from (Part("", (rest,)) for rest in behind)
    elif bytes(body[:6]).startswith(_MARKED.get(member.compress_type, b"\0no method")):
        yield Part(member.filename, (body,))
    else:
        yield Part(member.filename, _refused("packed with an unknown method"))


def _refused(reason: str) -> Iterator[bytes]:
    raise PackedError(f"a member of a ZIP archive that is {reason}")
    yield b""


def _inflated(member: zipfile.ZipInfo, body: memoryview, behind: list[bytes]) -> Iterator[bytes]:
    """behind: gets what the member has behind its stream."""
    decoder, checksum, rest = zlib.decompressobj(wbits=-15), 0, bytes(body)
    while not decoder.eof:
        try:
            piece = decoder.decompress(rest, _PIECE)
        except zlib.error:
            raise PackedError("a member of a ZIP archive that cannot be unpacked") from None
        checksum, rest = zlib.crc32(piece, checksum), decoder.unconsumed_tail
        if not piece and not rest and not decoder.eof:
            break
        yield piece
    if not decoder.eof or checksum != member.CRC:
        raise PackedError("a ZIP member is truncated or corrupt")
    behind += [decoder.unused_data] if decoder.unused_data else []


KIND = FileKind(name="zip", rank=20, fits=_fits, parts=parts, errors=(PackedError,), starts=(_MEMBER, _END))
