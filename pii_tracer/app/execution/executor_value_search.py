"""The scanner for executors, to look for values in what they are about to write (`executors.value_search_protocol`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.keys.parquet_encryption.master_keys import file_keys
from pii_tracer.model.datasets import Format, KeySet, Match
from pii_tracer.model.non_key_columns import NoKeys
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.hits import Hit, column_of
from pii_tracer.scan.known_columns import key_columns
from pii_tracer.scan.object_metadata import search_beside
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.value_forms import build_patterns

if TYPE_CHECKING:
    from executors.value_search_protocol import Seen


def finds(estate: Estate, base: Path) -> Callable[[Iterable[KeySet]], ScanFinder]:
    """The scanner for any key sets, with the keys of an estate's encrypted files. base: folder of the estate file."""
    return lambda sets: ScanFinder(sets, file_keys(estate.parquet_encryption, base))


class ScanFinder:
    """Looks for the values of some key sets (an `executors.value_search_protocol.Finder`)."""

    def __init__(self, sets: Iterable[KeySet], keys: FileKeys | None = None) -> None:
        self._patterns = build_patterns(sets, keys)

    def mask(self, text: str) -> str:
        return self._patterns.mask(text)

    def in_text(self, text: str) -> bool:
        return bool(scan_bytes("text", text.encode(), self._patterns).strong)

    def in_file(
        self, name: str, data: bytes, kind: Format, match: Match, others: Collection[str], no_keys: NoKeys
    ) -> Seen:
        patterns = self._patterns.leaving_out(no_keys).comparing(key_columns(match, kind=kind))
        seen = scan_bytes(name, data, patterns)
        return _seen(seen.hits, seen.unread, others)

    def beside(self, answer: Mapping[str, Any], tags: Mapping[str, str], others: Collection[str]) -> Seen:
        return _seen(*search_beside(answer, tags, self._patterns), others)


def _seen(hits: Iterable[Hit], unread: tuple[str, ...], others: Collection[str]) -> Seen:
    from executors.value_search_protocol import Seen

    return Seen(any(not (hit.weak and column_of(hit, others)) for hit in hits), unread)
