"""What stands beside the bytes of an object in S3: its user metadata, its content headers, its tags."""

from __future__ import annotations

from collections.abc import Mapping
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Hit
from pii_tracer.scan.value_forms import Patterns

METADATA = "object metadata"
"""`where` of a hit in the name or the value of user metadata."""
HEADER = "object header"
"""`where` of a hit in a content header."""
TAG = "object tag"
"""`where` of a hit in the name or the value of a tag."""

_HEADERS = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "WebsiteRedirectLocation",
)


def search_beside(
    answer: Mapping[str, Any], tags: Mapping[str, str], patterns: Patterns
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Hits beside the bytes, labelled by the name of the entry, and reasons why something could not be searched.

    answer: of HeadObject or GetObject. Text is searched as S3 answers it and, where S3 gives what is not ASCII as an
    RFC 2047 encoded word, decoded, too (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html).
    """
    collector = Collector(patterns)
    for name, value in answer.get("Metadata", {}).items():
        _pair(collector, name, value, METADATA)
    for name in _HEADERS:
        if answer.get(name):
            _spellings(collector, str(answer[name]), HEADER, name)
    for name, value in tags.items():
        _pair(collector, name, value, TAG)
    if answer.get("MissingMeta"):
        collector.unread(
            f"{counted(answer['MissingMeta'], 'entry of its metadata is', 'entries of its metadata are')}"
            " not shown by S3"
        )
    return collector.hits(), collector.reasons


def _pair(collector: Collector, name: str, value: str, where: str) -> None:
    _spellings(collector, name, where, None)
    _spellings(collector, value, where, name)


def _spellings(collector: Collector, text: str, where: str, column: str | None) -> None:
    collector.string(text, where, column, known=False)
    if "=?" not in text:
        return
    try:
        decoded = str(make_header(decode_header(text)))
    except (HeaderParseError, LookupError, ValueError):
        collector.unread(f"an {where} has an unknown encoding")
        return
    if decoded != text:
        collector.string(decoded, where, column, known=False)
