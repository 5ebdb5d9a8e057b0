"""What every client of listings must do before a store that does not tell everything: say so, and never end early.

`Lie` has each lie that can be noticed. A store that leaves entries out and says nothing of it cannot be noticed; a
listing that permissions filter is, in the protocols of these stores, a refusal (`tests/kits/store_kit.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from itertools import islice
from urllib.parse import parse_qsl, urlsplit

import pytest

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.stores import base
from pii_tracer.model.errors import EstateError
from tests.servers import Json, served

_MOST = 200
"""Entries after which a listing of two pages counts as one that never ends."""


class Lie(StrEnum):
    """NONE: two pages, and their end. LETTERS: four pages, whose names are in the order of HDFS and not of their letters.
    ITSELF: the second page leads to itself. CIRCLE: it leads to the first one. RENAMED: the same two pages for ever, each
    time with a new token. CUT: the first page is called the last, and so is that of a question behind it. EMPTY: pages without entries, each time with a new token. NOWHERE: more is said to come, and
    not where. HALF: the answer breaks off. OTHER: it is no listing.
    """

    NONE = "none"
    LETTERS = "letters"
    ITSELF = "itself"
    CIRCLE = "circle"
    RENAMED = "renamed"
    CUT = "cut"
    EMPTY = "empty"
    NOWHERE = "nowhere"
    HALF = "half"
    OTHER = "other"


_TRUE = (Lie.NONE, Lie.LETTERS)
_OVERCOME = (*_TRUE, Lie.CUT)


@dataclass(frozen=True)
class Page:
    """names: of its entries, of which those of the second page come behind those of the first. token: with which the
    next page is asked for; None at the end."""

    names: tuple[str, ...]
    token: str | None


class _Pages:
    """The pages of a lying listing, by the tokens that lead to them; from the beginning where there is none."""

    def __init__(self, lie: Lie) -> None:
        self.lie, self.asked = lie, 0
        self.told = set[str]()
        """Tokens that lead on, and were not followed yet: in some protocols a token is the last name of its page."""

    def names(self) -> tuple[str, ...]:
        return ("Ä", "Öl", "a", "z") if self.lie is Lie.LETTERS else ("a", "b", "c", "d")

    def answer(self, token: str | None, name: str | None, *, again: bool) -> Page:
        """The page that a token leads to, or what comes behind a name."""
        if name and token not in self.told and self.lie in _OVERCOME:
            return self._behind(name, again=again)
        page = self._page(token)
        self.told = {page.token} if page.token else set()
        return page

    def _behind(self, name: str, *, again: bool) -> Page:
        """What comes behind a name, and with `again` the name itself; one entry where listings are cut, which is called
        all there is.
        """
        self.asked += 1
        names = self.names()
        first = names.index(name) + (not again) if name in names else 0
        return Page(names[first : first + 1 + again] if self.lie is Lie.CUT else names[first:], None)

    def _page(self, token: str | None) -> Page:
        self.asked += 1
        if self.lie is Lie.CUT:
            return Page(self.names()[:1], None)
        second = bool(token) and not str(token).startswith("first")
        if self.lie is Lie.EMPTY:
            return Page((), f"d{self.asked}" if self.asked < _MOST else None)
        if self.lie is Lie.LETTERS:
            at = self.names().index(token) + 1 if token else 0
            return Page(self.names()[at : at + 1], self.names()[at] if at < 3 else None)
        names = self.names()[2:] if second else self.names()[:2]
        if not second:
            return Page(names, f"d{self.asked}" if self.lie is Lie.RENAMED else "d")
        following = {Lie.ITSELF: "d", Lie.CIRCLE: "first", Lie.RENAMED: f"first{self.asked}"}
        return Page(names, following.get(self.lie))


class ListingKit:
    """Abstract: `answer`, `listed`, and the lies that the protocol has room for.

    without: lies that its protocol cannot tell, with the reason. again: whether what comes behind a name begins with
    that name. refusals: errors that its caller turns
    into a gap. other: a body that is no listing. strange: listings with an entry that is none.
    """

    without: Mapping[Lie, str] = {}
    again = False
    refusals: tuple[type[Exception], ...] = (EstateError,)
    other = b"{}"
    strange: tuple[bytes, ...] = ()
    media_type = "application/json"

    def answer(self, page: Page, *, nowhere: bool) -> bytes:
        """The body of a page. nowhere: say that more is to come, and not where."""
        raise NotImplementedError

    def token(self, query: Mapping[str, str]) -> str | None:
        """The token with which a page is asked for."""
        raise NotImplementedError

    def behind(self, query: Mapping[str, str]) -> str | None:
        """The name behind which it is asked for what comes, where it is; the kit knows which names it listed."""
        raise NotImplementedError

    def listed(self, url: str) -> Iterable[str]:
        """The names that the client lists before a server."""
        raise NotImplementedError

    def beside(self, path: str) -> bytes | None:
        """The body of an answer to what is no listing."""
        return None

    @pytest.mark.parametrize("lie", [lie for lie in Lie if lie not in _OVERCOME])
    def test_what_can_be_noticed_is_an_error(self, lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(base, "EMPTY_PAGES", 20)
        if lie in self.without:
            pytest.skip(self.without[lie])
        with self._lying(lie) as url, pytest.raises(self.refusals):
            assert len(list(islice(self.listed(url), _MOST))) < _MOST, "it never ends"

    def test_an_entry_that_is_none_is_an_error(self) -> None:
        for body in self.strange:
            with self._lying(Lie.OTHER, body) as url, pytest.raises(self.refusals):
                list(self.listed(url))

    @pytest.mark.parametrize("lie", _OVERCOME)
    def test_a_listing_goes_to_its_true_end(self, lie: Lie) -> None:
        """A page that is cut and called the last is not believed: what comes behind it is asked for."""
        if lie in self.without:
            pytest.skip(self.without[lie])
        with self._lying(lie) as url:
            assert sorted(islice(self.listed(url), _MOST)) == sorted(_Pages(lie).names())

    @contextmanager
    def _lying(self, lie: Lie, other: bytes | None = None) -> Iterator[str]:
        kit, pages, lock = self, _Pages(lie), threading.Lock()

        class Handler(Json):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                body = kit.beside(self.path)
                if body is not None:
                    return self.give(body, len(body))
                query = dict(parse_qsl(parts.query))
                with lock:
                    page = pages.answer(kit.token(query), kit.behind(query), again=kit.again)
                last = page.token is None
                body = (
                    (other or kit.other) if lie is Lie.OTHER else kit.answer(page, nowhere=last and lie is Lie.NOWHERE)
                )
                return self.give(body, len(body) // 2 if lie is Lie.HALF and last else len(body))

            def give(self, body: bytes, sent: int) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kit.media_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:sent])
                self.close_connection = sent < len(body)

            do_HEAD = do_GET

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        with served(server):
            yield f"http://127.0.0.1:{server.server_port}"
