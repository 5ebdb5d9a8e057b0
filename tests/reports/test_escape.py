"""Names from outside stay names."""

from __future__ import annotations

import html as stdlib_html
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from reports.escape import markdown, markdown_code, visible


def _said(markdown_text: str) -> str:
    """What a reader sees: comments gone, references resolved."""
    return stdlib_html.unescape(markdown_text.replace("<!-- -->", ""))


@given(st.text())
def test_nothing_invisible_passes(text: str) -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not [char for char in visible(text) if unicodedata.category(char) in hidden]


@given(st.text())
def test_visible_text_is_left_alone(text: str) -> None:
    assert visible(visible(text)) == visible(text)


def test_marks_are_shown_by_their_code() -> None:
    assert visible("a\u202eb\n\x1b[0m") == r"a\u202eb\n\x1b[0m"


@given(st.text())
def test_markdown_says_the_same_without_any_mark(text: str) -> None:
    escaped = markdown(text)
    assert _said(escaped) == visible(text)
    bare = re.sub(r"&#\d+;", "", escaped.replace("<!-- -->", ""))
    assert not set(bare) & set("\\`*[]<>&|~$")


@given(st.text(alphabet="@#awx:/.hnptsj_ 1"))
def test_no_mention_reference_or_link_survives(text: str) -> None:
    escaped = markdown(text)
    assert not re.search(r"[@#]\w", escaped.replace("&#", "&"))
    assert not re.search(r"(?i)\bwww\.|https?:", escaped)
    assert not re.search(r"(?<![A-Za-z0-9])_", escaped)


def test_names_stay_readable_in_the_source() -> None:
    assert markdown_code("lake.prod.user_id-2") == "<code>lake.prod.user_id-2</code>"
