"""Documents in which marks part a value: RTF, entities that XML declares, sections of character data."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pii_tracer.scan.hit_collector import Collector

_ENTITY = re.compile(rb"""<!ENTITY\s+(%\s+)?([\w.:-]+)\s+(?:(["'])(.*?)\3|(SYSTEM|PUBLIC)\b)""", re.DOTALL)
_DOUBLED = re.compile(rb'<!ENTITY\s+[\w.:%\s-]+\s\\*""|<!ENTITY\s+[\w.:%\s-]+\s\\+"')
_REFERENCE = re.compile(rb"[&%]([A-Za-z_:][\w.:-]*);")
_ROUNDS = 8
_MOST = 16 * 1024**2
_SECTION = re.compile(rb"<!\[CDATA\[|\]\]>|<\?.*?\?>", re.DOTALL)
_RTF = re.compile(
    rb"\\'([0-9a-fA-F]{2})|\\u(-?\d{1,6})[ ]?(?:\\'[0-9a-fA-F]{2}|[^\\{}])?|\\([a-z]{1,32})-?\d*[ ]?|\\(.)|[{}\r\n]"
    rb"|[^\\{}\r\n]+",
    re.DOTALL,
)
_PARTS = frozenset({b"par", b"line", b"tab", b"cell", b"row", b"sect", b"page"})
_HIDDEN = re.compile(rb"\\(?:objdata|pict|bin\d|datastore|themedata)\b")


def search(text: bytes, marks: Collection[bytes], where: str, column: str | None, collector: Collector) -> None:
    """The text as it is shown. What cannot be shown here is unread."""
    if b"{\\rtf" in marks:
        shown = as_rtf_shows(text[text.index(b"{\\rtf") :])
        collector.string(shown, where, column, known=False)
        if _HIDDEN.search(text):
            collector.unread("an RTF document that contains objects or pictures")
    if b"<!ENTITY" in marks:
        expanded = with_entities(text)
        if expanded is None:
            collector.unread("a document with entities that cannot be resolved")
        else:
            collector.string(expanded.decode("utf-8", "surrogateescape"), where, column, known=False)
    elif b"<![CDATA[" in marks:
        collector.string(_SECTION.sub(b"", text).decode("utf-8", "surrogateescape"), where, column, known=False)


def with_entities(text: bytes) -> bytes | None:
    """A document with the entities in their places that it declares; None where it has others than plain ones
    (https://www.w3.org/TR/xml/#sec-entity-decl)."""
    if b'""' in text and _DOUBLED.search(text):
        text = text.replace(b'""', b'"')
    text = text.replace(b'\\"', b'"')
    found: dict[bytes, bytes] = {}
    for declared in _ENTITY.finditer(text):
        parameter, name, quote, value, _ = declared.groups()
        if parameter or quote is None:
            return None
        found.setdefault(name, value)
    if len(found) < text.count(b"<!ENTITY"):
        return None
    text = _SECTION.sub(b"", text)
    for _ in range(_ROUNDS):
        done = _REFERENCE.sub(lambda match: found.get(match.group(1), match.group()), text)
        if len(done) > _MOST + len(text):
            return None
        if done == text:
            return done
        text = done
    return None


def as_rtf_shows(text: bytes) -> str:
    """The letters of an RTF document (Rich Text Format Specification 1.9.1), in Windows-1252 where it has bytes."""
    out = []
    for found in _RTF.finditer(text):
        byte, unit, word, sign = found.groups()
        if byte:
            out.append(bytes([int(byte, 16)]).decode("cp1252", "replace"))
        elif unit:
            number = int(unit) & 0xFFFF
            out.append(chr(number))
        elif word:
            out.append("\n" if word in _PARTS else "")
        elif sign:
            out.append({b"~": "\u00a0", b"_": "\u2011", b"-": ""}.get(sign, sign.decode("latin-1")))
        elif found.group()[:1] not in b"{}\r\n":
            out.append(found.group().decode("utf-8", "replace"))
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
