"""Writings of a value in which every sign, or every sign but letters and digits, is escaped, and in other code pages.

Each is a pattern of its own: nothing of the value may be left in it that a view could be made around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pii_tracer.scan.value_encodings import base64_cores

Sign = Callable[[bytes, str], str]
"""Writes one sign, which is told in UTF-8 and as a character."""


def _bytes(style: str) -> Sign:
    return lambda data, _: "".join(style.format(byte) for byte in data)


def _units(style: str) -> Sign:
    return lambda _, sign: "".join(
        style.format(int.from_bytes(unit, "big")) for unit in _two(sign.encode("utf-16-be", "surrogatepass"))
    )


def _point(style: str) -> Sign:
    return lambda _, sign: style.format(ord(sign))


def _two(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 2] for at in range(0, len(data), 2))


_STYLES: tuple[Sign, ...] = (
    *(_units("\\" * slashes + "u{:04x}") for slashes in (1, 2)),
    *(_bytes("\\" * slashes + "x{:02x}") for slashes in (1, 2)),
    *(_bytes("\\" * slashes + "{:03o}") for slashes in (1, 2)),
    *(_bytes(style) for style in ("%{:02x}", "%25{:02x}", "={:02x}")),
    *(_point(style) for style in ("&#{};", "&#x{:x};", "&#x{:04x};", "&amp;#{};", "\\u{{{:x}}}", "\\U{:08x}")),
    _units("%u{:04x}"),
)
_SOME: tuple[Sign, ...] = (
    *_STYLES,
    _bytes("%2525{:02x}"),
    _units("\\{:04x}"),
    _bytes("\\{:02x}"),
)
"""Beside them SQL's (`U&'…'`) and LDAP's, which escape what is no letter or digit."""

_NAMES = str.maketrans(
    {"@": "&commat;", "+": "&plus;", ".": "&period;", "_": "&lowbar;", "'": "&apos;", "-": "&hyphen;"}
)
_ZEROS = (
    *(0x660, 0x6F0, 0x966, 0xFF10),
    *(0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0xF20, 0x1040, 0x17E0),
)
"""Of Arabic, Persian and Hindi; of full width, which input methods for Chinese and Japanese write; of Bengali, Punjabi,
Gujarati, Odia, Tamil, Telugu, Kannada, Malayalam, Thai, Lao, Tibetan, Burmese and Khmer."""
_DIGITS = tuple(str.maketrans("0123456789", "".join(chr(zero + n) for n in range(10))) for zero in _ZEROS)
_WIDE = str.maketrans({n: n + 0xFEE0 for n in range(0x21, 0x7F)} | {0x20: 0x3000})
_WIDE_SIGNS = {n: wide for n, wide in _WIDE.items() if not chr(n).isalnum()}
_KANA_SIGNS = _WIDE_SIGNS | {0x2E: 0x3002}
"""As input methods for Japanese write a dot."""
_MIME_KEPT = frozenset("-!*+/")

_CODE_PAGES = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1257", "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_9"),
    *("iso8859_15", "koi8_r", "cp437", "cp850", "cp852", "cp866", "mac_roman", "shift_jis", "euc_jp", "iso2022_jp"),
    *("gb18030", "big5", "euc_kr"),
)


JOINTS = (" ", ":", "-")
"""What stands between the bytes of a value in hex."""


def escaped(value: str) -> set[str]:
    """Every sign escaped, in the value's case and in lower case; all but letters and digits, or `@` alone, too."""
    found = set(of_some_signs(value))
    for text in dict.fromkeys((value, value.lower())):
        found.update(of_each_sign(text))
        found |= {text.encode().hex(part) for part in JOINTS}
    found |= {wide(text) for text in (value, value.lower(), value.upper())}
    return found - {value}


def of_each_sign(text: str) -> tuple[str, ...]:
    """Every sign escaped, in each of the styles: a text is written as its signs are."""
    return tuple("".join(style(sign.encode(), sign) for sign in text) for style in _STYLES)


def of_some_signs(text: str) -> tuple[str, ...]:
    """What is no letter or digit escaped, `@` alone, or digits in other scripts: a text is written as its signs are."""
    found = []
    for kept in (str.isalnum, lambda sign: sign != "@"):
        for style in _SOME:
            found.append("".join(s if kept(s) else style(s.encode(), s) for s in text))
    found += (text.translate(_NAMES), text.replace("@", "&commat;"), _in_a_header(text))
    found += (text.translate(_WIDE_SIGNS), text.translate(_KANA_SIGNS), text.replace("@", "\uff20"))
    return (*found, *(text.translate(digits) for digits in _DIGITS))


def wide(text: str) -> str:
    """In signs of full width."""
    return text.translate(_WIDE)


def in_other_digits(value: str) -> set[str]:
    """With the digits of other scripts."""
    return {value.translate(digits) for digits in _DIGITS}


def _in_a_header(value: str) -> str:
    """As a mail's header has it in quoted-printable (RFC 2047, section 4.2)."""
    kept = (s if s.isascii() and (s.isalnum() or s in _MIME_KEPT) else _bytes("={:02x}")(s.encode(), s) for s in value)
    return "".join("_" if sign == "=20" else sign for sign in kept)


def in_code_pages(value: str) -> set[bytes]:
    """A value that is no ASCII in the encodings that text had before UTF-8, those that have all its letters."""
    found = set()
    for page in () if value.isascii() else _CODE_PAGES:
        try:
            found.add(value.encode(page))
        except UnicodeEncodeError:
            continue
    return found


def misread(value: str) -> set[bytes]:
    """A value that is no ASCII as programs keep it that take UTF-8 for Windows-1252 or ISO 8859-1, once or twice."""
    found = set()
    for page in () if value.isascii() else ("latin-1", "cp1252"):
        text = value
        for _ in range(2):
            text = "".join(bytes([b]).decode(page, "ignore") or chr(b) for b in text.encode())
            found.add(text.encode())
    return found


def _in_windows(value: str) -> bytes:
    """A value that is no ASCII in Windows-1252, which has the letters of ISO 8859-1; nothing where it cannot be."""
    try:
        return b"" if value.isascii() else value.encode("cp1252")
    except UnicodeEncodeError:
        return b""


def in_old_headers(value: str) -> set[bytes]:
    """A value in Windows-1252 as a mail's header has it: all its signs escaped, or those that have to be."""
    signs = [bytes([byte]) for byte in _in_windows(value)]
    kept = {b" ": b"_"} | {s: s for s in signs if s.isalnum() or s in b"-!*+/"}
    every = [b"=%02x" % ord(sign) for sign in signs]
    return {b"".join(every), b"".join(kept.get(sign, escaped) for sign, escaped in zip(signs, every, strict=True))} - {
        b""
    }


def old_encoded(value: str) -> Iterator[tuple[bytes, bool]]:
    """A value in Windows-1252 in hex and base64, and whether it is the latter."""
    if data := _in_windows(value):
        yield data.hex().encode(), False
        for core in base64_cores(data):
            yield core, True


def wide_encoded(value: str) -> Iterator[tuple[bytes, bool]]:
    """UTF-16 in hex and base64, as PowerShell and .NET write it, and whether it is the latter."""
    for order in ("utf-16-le", "utf-16-be"):
        data = value.encode(order)
        yield data.hex().encode(), False
        for core in base64_cores(data):
            yield core, True
