"""The pages: each is a view of the state folder in a template. Handlers run in threads and share only caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pii_tracer.app.state_views.overview import StateViews, now
from pii_tracer.app.state_views.untrusted_files import Broken
from pii_tracer.common.unexpected_errors import place_of
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.web.guard import Guard
from pii_tracer.web.paging import Part, part
from reports.html_templates import environment, render_html
from reports.web.hop_picture import hop_picture
from reports.web.trend_line import trend_line

MOST_LISTED = 50
MOST_ROWS = 200
MOST_ASKED = 200
"""Characters of a search."""
_KEY = re.compile("[0-9a-f]{16}")
T = TypeVar("T")
Handler = Callable[[Request], Response]
Page = Callable[[StateViews, Request], Response]


def application(views: StateViews, hosts: frozenset[str], token: str | None, tell: Callable[[str], None]) -> Guard:
    """The pages behind their guard. tell: is told one line for each unexpected error, without any content."""
    pages: dict[str, Page] = {
        "/": _overview,
        "/plans": _plans,
        "/plans/{key}": _plan,
        "/runs": _runs,
        "/runs/{key}": _run,
        "/readiness": _readiness,
        "/lineage": _lineage,
        "/lineage/{key}": _hops,
        "/proofs": _proofs,
        "/proofs/{key}": _proof,
    }
    routes = [Route(path, _careful(page, views, tell)) for path, page in pages.items()]
    routes += [Route("/static/style.css", _style), Route("/static/live.js", _script)]
    routes += [Route("/favicon.ico", lambda _: Response(status_code=204))]  # browsers ask for one
    made = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    made.router.redirect_slashes = False
    return Guard(made, hosts, token)


def _careful(page: Page, views: StateViews, tell: Callable[[str], None]) -> Handler:
    """A page that fails takes no other along, and shows nothing of what it failed at."""

    def answer(request: Request) -> Response:
        try:
            return page(views, request)
        except _CannotBeRead as error:
            return _page("broken.html.j2", "", broken=error.broken)
        except PiiTracerError as error:
            return _page("problem.html.j2", "", status=500, title="This page cannot be made", what=error.what)
        except HTTPException:
            raise
        except Exception as error:  # messages can quote the data that they choked on
            tell(f"unexpected {type(error).__name__} at {place_of(error)}")
            what = f"an unexpected {type(error).__name__}; the other pages still work"
            return _page("problem.html.j2", "", status=500, title="This page cannot be made", what=what)

    return answer


def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _page("problem.html.j2", "", status=status, title="There is no such page", what="it may be gone by now")


def _page(template: str, at: str, *, status: int = 200, **values: Any) -> Response:
    # lone surrogates (bytes of a file name that are no text) are escaped by the templates
    return HTMLResponse(render_html(f"web/{template}", at=at, **values), status)


class _CannotBeRead(Exception):
    """A page was asked for whose file is broken."""

    def __init__(self, broken: Broken) -> None:
        super().__init__(broken.key)
        self.broken = broken


def _there(found: T | Broken | None) -> T:
    """What was found. Raises where it is not there (404), or is broken: that page then says so."""
    if found is None:
        raise HTTPException(404)
    if isinstance(found, Broken):
        raise _CannotBeRead(found)
    return found


def _words(request: Request) -> str:
    return request.query_params.get("q", "").strip()[:MOST_ASKED]


def _number(request: Request) -> int:
    text = request.query_params.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _listed(
    request: Request,
    found: Sequence[Any],
    texts: Callable[[Any], Sequence[str]],
    blocks: Callable[[Any], bool] = lambda _: False,
) -> Part[Any]:
    """What a search finds; what blocks is on every part."""
    asked = _words(request)
    fitting = [one for one in found if any(asked.lower() in text.lower() for text in texts(one))] if asked else found
    always = [one for one in fitting if blocks(one)]
    return part(always, [one for one in fitting if not blocks(one)], _number(request), MOST_LISTED, asked)


def _overview(views: StateViews, request: Request) -> Response:
    trend = views.readings.read()
    line = None if isinstance(trend, Broken) else trend_line([point.score for point in trend.points])
    found = views.overview()
    waiting = part((), found.waiting, 1, MOST_LISTED)
    return _page("overview.html.j2", "/", found=found, waiting=waiting, line=line, state=str(views.state))


def _plans(views: StateViews, request: Request) -> Response:
    plans, broken = views.plans.all(now())
    begun = {run.plan_id: run.key for run in views.runs.all()[0]}
    found = _listed(
        request, plans, lambda p: (p.summary.plan_id, p.summary.file, *p.summary.requests), lambda p: p.summary.blocked
    )
    return _page("plans.html.j2", "/plans", found=found, broken=broken, begun=begun)


def _plan(views: StateViews, request: Request) -> Response:
    found = _there(views.plans.one(request.path_params["key"], now()))
    asked, rows = _words(request), found.view.rows
    fitting = [row for row in rows if asked.lower() in row.name.lower()] if asked else rows
    begun = {run.plan_id: run.key for run in views.runs.all()[0]}
    copies = part((), fitting, _number(request), MOST_ROWS, asked)
    return _page(
        "plan.html.j2", "/plans", page=found, copies=copies, key=found.listed.summary.key,
        run=begun.get(found.listed.summary.plan_id),
    )  # fmt: skip


def _runs(views: StateViews, request: Request) -> Response:
    runs, broken = views.runs.all()
    found = _listed(request, runs, lambda run: (run.plan_id,), lambda run: run.blocked or run.live)
    return _page("runs.html.j2", "/runs", found=found, broken=broken)


def _run(views: StateViews, request: Request) -> Response:
    found = _there(views.runs.one(request.path_params["key"]))
    asked = _words(request)
    fitting = [line for line in found.lines if asked.lower() in line.id.lower()] if asked else found.lines
    stops = [line for line in fitting if line.state in ("failed", "waiting")]
    others = [line for line in fitting if line.state not in ("failed", "waiting")]
    return _page("run.html.j2", "/runs", run=found, lines=part(stops, others, _number(request), MOST_ROWS, asked))


def _readiness(views: StateViews, request: Request) -> Response:
    found = _there(views.readings.read())
    asked = _words(request)
    tables = part((), found.search(asked), _number(request), MOST_ROWS, asked)
    line = trend_line([point.score for point in found.points])
    return _page("readings.html.j2", "/readiness", found=found, tables=tables, line=line)


def _proofs(views: StateViews, request: Request) -> Response:
    claims, broken = views.attestations.all()
    found = _listed(request, claims, lambda claim: (claim.run, *claim.requests))
    return _page("proofs.html.j2", "/proofs", found=found, broken=broken)


def _proof(views: StateViews, request: Request) -> Response:
    return _page("proof.html.j2", "/proofs", claim=_there(views.attestations.one(request.path_params["key"])))


def _lineage(views: StateViews, request: Request) -> Response:
    known = views.lineage.read()
    if isinstance(known, Broken):
        raise _CannotBeRead(known)
    datasets = known.datasets if known else ()
    found = _listed(request, datasets, lambda one: (one.name, str(one.dataset)))
    return _page("lineage.html.j2", "/lineage", known=known, found=found)


def _hops(views: StateViews, request: Request) -> Response:
    opened = [key for key in request.query_params.get("open", "").split(",") if _KEY.fullmatch(key)]
    column = request.query_params.get("column")
    hops = _there(_there(views.lineage.read()).hops(request.path_params["key"], column, opened))
    nodes = {node.key: node for node in hops.nodes}
    return _page(
        "hops.html.j2",
        "/lineage",
        hops=hops,
        nodes=nodes,
        opened=opened,
        picture=hop_picture([(n.key, n.name) for n in hops.nodes], [(k.source, k.target) for k in hops.links]),
        beside=part((), hops.beside, _number(request), MOST_ROWS),
    )


def _style(request: Request) -> Response:
    return Response(environment().get_template("web/style.css").render(), media_type="text/css")


def _script(request: Request) -> Response:
    return Response(environment().get_template("web/live.js").render(), media_type="text/javascript")
