"""Names from outside (tables, columns, paths, jobs) are untrusted: make them harmless before a person reads them."""

from __future__ import annotations

import re
import unicodedata

# Control, format (bidi, zero width), surrogate, private and unassigned characters, line and paragraph separators:
# none of them can be seen, and each can make a name look like another one.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKDOWN = frozenset("\\`*[]<>&|~$")
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # between letters it is no mark
_SCHEME = re.compile(r"(?i)\b(https?|ftp|xmpp|mailto|javascript|data):")
_WWW = re.compile(r"(?i)\bwww\.")


def visible(text: str) -> str:
    """The text with every character that cannot be seen written as an escape: newline `\\n`, RTL mark `\\u200f`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_seen(char) for char in text)


def _seen(char: str) -> str:
    if unicodedata.category(char) not in _INVISIBLE:
        return char
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    if short:
        return short
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def markdown(text: str) -> str:
    """Text that GitHub-flavoured Markdown shows as it is, in a paragraph or a table cell; not for the start of a line.

    Character references cannot stand for structure (CommonMark 0.31, section 2.5), so every mark becomes one.
    Mentions, issue numbers and addresses are found after that in the rendered text: an empty comment keeps the sign
    from the word.
    """
    text = "".join(_markdown_char(char) for char in visible(text))
    text = _UNDERSCORE.sub("&#95;", text)
    text = _SCHEME.sub(lambda match: f"{match.group(1)}&#58;", text)
    return _WWW.sub(lambda match: f"{match.group(0)[:3]}&#46;", text)


def _markdown_char(char: str) -> str:
    if char in "@#":
        return f"{char}<!-- -->"
    return f"&#{ord(char)};" if char in _MARKDOWN else char


def markdown_code(text: str) -> str:
    """A name in fixed width, safe in a table cell too (a code span's backticks and pipes would not be)."""
    return f"<code>{markdown(text)}</code>"
