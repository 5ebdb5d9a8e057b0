"""The events of a Marquez server: GET /api/v1/events/lineage, https://marquezproject.ai/docs/api.

Marquez serves run events only, sorted by time. Pages are asked for by time and not by number alone, so that events
which arrive meanwhile push nothing over the edge of a page; what is read twice is stored once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from pii_tracer.common.http import NoAnswer, ask, bearer
from pii_tracer.lineage.sources.evidence_merging import iso, micros
from pii_tracer.lineage.sources.log_lines import decoded
from pii_tracer.lineage.sources.openlineage.event_fetching import Reading, Unreachable
from pii_tracer.lineage.sources.openlineage.event_parsing import not_an_event

_PAGE = 100
"""Marquez's own page size."""

_SECONDS = 30
_LARGEST = 512 * 1024 * 1024
_FIRST, _LAST = "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"


class MarquezSource:
    """All run events of a server, oldest first."""

    def __init__(self, url: str, page: int = _PAGE) -> None:
        self._url, self._page = url.rstrip("/"), page

    @property
    def name(self) -> str:
        parts = urlsplit(self._url)
        return f"Marquez at {parts.hostname}:{parts.port}" if parts.port else f"Marquez at {parts.hostname}"

    def events(self, reading: Reading) -> Iterator[dict[str, Any]]:
        """Every event; what is none is a reject."""
        after, offset = _FIRST, 0
        while True:
            page = self._ask(after, offset)
            last = after
            for place, event in enumerate(page, offset):
                reason = not_an_event(event)
                if reason:
                    reading.reject(f"{self.name}, after {after}, entry {place}", reason)
                    continue
                last = _later(last, event)
                yield event
            if len(page) < self._page:
                return
            # as long as all of a page is of one moment, time alone does not lead on
            after, offset = (last, 0) if last != after else (after, offset + len(page))

    def _ask(self, after: str, offset: int) -> list[Any]:
        query = {"after": after, "before": _LAST, "sortDirection": "asc", "limit": self._page, "offset": offset}
        headers = {"Accept": "application/json", **bearer(os.environ.get("PII_TRACER_MARQUEZ_KEY"))}
        url = f"{self._url}/api/v1/events/lineage"
        try:
            content = decoded(ask(url, query=query, headers=headers, seconds=_SECONDS, limit=_LARGEST))
        except NoAnswer as error:
            raise Unreachable(f"it {error}") from None
        events = content.get("events") if isinstance(content, dict) else None
        if not isinstance(events, list):
            raise Unreachable("its answer contains no list of events")
        return events


def _later(known: str, event: dict[str, Any]) -> str:
    at = micros(event["eventTime"]) if isinstance(event.get("eventTime"), str) else None
    return iso(max(at or 0, micros(known) or 0)) or known
