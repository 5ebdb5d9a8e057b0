"""The request store over HTTP: an ASGI application over the use cases. A bearer token is always asked for.

Nothing that a client sends is logged or repeated in an answer: a key can stand in a body, an address or a header.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pii_tracer.app.intake.request_states import (
    Shown,
    count_requests,
    list_requests,
    narrow_request,
    show_request,
    withdraw_request,
)
from pii_tracer.app.intake.single_requests import IdempotencyConflict, take_request
from pii_tracer.app.settings import Settings, moment
from pii_tracer.common.unexpected_errors import place_of
from pii_tracer.http_api.models import (
    NarrowedTo,
    NewRequest,
    Problem,
    RequestList,
    RequestView,
    ShownRequest,
    TakenRequest,
    Withdrawal,
    WithdrawnRequest,
)
from pii_tracer.http_api.openapi import Operation, Parameter, document
from pii_tracer.intake.requests import NotTaken, RequestState, Taken
from pii_tracer.model.errors import PiiTracerError, RequestError, UsageError

MOST_BODY = 16 * 1024
"""Bytes of a body."""
MOST_LISTED = 1_000
_ID = Parameter("id", "path", "of the request, or of a further receipt of it", needed=True)
_ONCE = Parameter(
    "Idempotency-Key", "header", "the same for every attempt at the same request; 8 to 128 letters, digits, `-`", True
)
OPERATIONS = (
    Operation(
        "POST",
        "/v1/requests",
        "take a request in",
        NewRequest,
        {200: TakenRequest, 201: TakenRequest},
        (400, 401, 409, 413, 415, 422, 503),
        (_ONCE,),
    ),
    Operation(
        "GET",
        "/v1/requests",
        "list requests, the one that is due first at the beginning",
        None,
        {200: RequestList},
        (400, 401, 503),
        (
            Parameter("state", "query", f"one of {', '.join(RequestState)}; may be repeated"),
            Parameter("due_before", "query", "a time with a time zone"),
            Parameter("limit", "query", f"100, if it is not given; {MOST_LISTED} at most"),
            Parameter("after", "query", "the `next` of the page before"),
        ),
    ),
    Operation("GET", "/v1/requests/{id}", "show one", None, {200: ShownRequest}, (401, 404, 503), (_ID,)),
    Operation(
        "POST",
        "/v1/requests/{id}/narrowing",
        "keep some data, as its person asks; the same once more changes nothing",
        NarrowedTo,
        {200: ShownRequest},
        (400, 401, 404, 409, 413, 415, 422, 503),
        (_ID,),
    ),
    Operation(
        "POST",
        "/v1/requests/{id}/withdrawal",
        "take it back, as its person asks",
        Withdrawal,
        {200: WithdrawnRequest},
        (400, 401, 404, 409, 413, 415, 422, 503),
        (_ID,),
    ),
)
M = TypeVar("M", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


def application(settings: Settings, token: str, tell: Callable[[str], None]) -> Starlette:
    """The application. token: what clients must give. tell: is told one line an answer, without what was sent."""
    handlers: dict[str, Handler] = {
        "POST /v1/requests": partial(_add, settings),
        "GET /v1/requests": partial(_list, settings),
        "GET /v1/requests/{id}": partial(_show, settings),
        "POST /v1/requests/{id}/narrowing": partial(_narrow, settings),
        "POST /v1/requests/{id}/withdrawal": partial(_withdraw, settings),
    }
    routes = [
        Route(
            o.path, _guarded(f"{o.method} {o.path}", handlers[f"{o.method} {o.path}"], token, tell), methods=[o.method]
        )
        for o in OPERATIONS
    ]
    routes.append(Route("/v1/openapi.json", _guarded("GET /v1/openapi.json", _document, token, tell)))
    return Starlette(routes=routes)


def _guarded(route: str, handler: Handler, token: str, tell: Callable[[str], None]) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            _authorise(request, token)
            response = await handler(request)
        except HTTPException as refused:
            response = _problem(refused.status_code, refused.detail, headers=dict(refused.headers or {}))
        except NotTaken as why:
            response = _problem(422, str(why))
        except IdempotencyConflict as error:
            response = _problem(409, error.what, error.todo)
        except RequestError as error:
            response = _problem(503, error.what, error.todo)
        except PiiTracerError as error:
            response = _problem(500, "the request store cannot be used")
            tell(f"{type(error).__name__}: {error.what}")
        except Exception as error:  # its message can hold what was sent: only the kind and our own line are told
            response = _problem(500, "an unexpected error")
            tell(f"unexpected {type(error).__name__} at {place_of(error)}")
        tell(f"{route} {response.status_code}")
        return response

    return answer


def _authorise(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise HTTPException(401, "the bearer token is missing or wrong", {"WWW-Authenticate": "Bearer"})


def _problem(status: int, error: str, todo: str | None = None, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(Problem(error=error, todo=todo).model_dump(), status, headers)


def _told(model: BaseModel, status: int = 200) -> Response:
    return JSONResponse(model.model_dump(mode="json"), status)


async def _body(request: Request, kind: type[M]) -> M:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body is not application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise HTTPException(413, f"the body is longer than {MOST_BODY} bytes")
    try:
        told = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    try:
        return kind.model_validate(told)
    except ValidationError as error:
        _refuse(error)


def _refuse(error: ValidationError) -> NoReturn:
    found = error.errors(include_input=False, include_url=False, include_context=False)[0]
    if found["type"] == "extra_forbidden":  # its name is the client's own, and can be anything
        raise HTTPException(422, "the body has a field that is not known") from None
    raise HTTPException(422, f"{'.'.join(map(str, found['loc'])) or 'the body'}: {found['msg']}") from None


async def _add(settings: Settings, request: Request) -> Response:
    once = request.headers.get("idempotency-key", "")
    if not (8 <= len(once) <= 128 and once.isascii() and once.replace("-", "").replace("_", "").isalnum()):
        raise HTTPException(400, "the header Idempotency-Key is missing, or not 8 to 128 letters, digits, `-` and `_`")
    asked = await _body(request, NewRequest)
    taken, one, widened = await run_in_threadpool(take_request, settings, asked.model_dump(exclude_none=True), once)
    answer = TakenRequest(outcome=taken.value, request=RequestView.of(one), widened=widened)
    return _told(answer, 200 if taken is Taken.KNOWN else 201)


async def _list(settings: Settings, request: Request) -> Response:
    asked = request.query_params
    try:
        states = tuple(RequestState(name) for name in asked.getlist("state"))
        before = moment(asked["due_before"]) if "due_before" in asked else None
        limit = int(asked.get("limit", "100"))
    except (ValueError, UsageError):
        raise HTTPException(400, "`state`, `due_before` or `limit` is none") from None
    if not 1 <= limit <= MOST_LISTED:
        raise HTTPException(400, f"`limit` is not between 1 and {MOST_LISTED}")
    return await run_in_threadpool(_listed, settings, states, before, limit, asked.get("after"))


def _listed(
    settings: Settings, states: tuple[RequestState, ...], before: Any, limit: int, after: str | None
) -> Response:
    try:
        found = list(islice(list_requests(settings, states=states, due_before=before, after=after), limit + 1))
    except UsageError:
        raise HTTPException(400, "`after` is not a request") from None
    page = tuple(RequestView.of(one) for one in found[:limit])
    following = page[-1].id if len(found) > limit else None
    return _told(RequestList(counts=count_requests(settings), requests=page, next=following))


async def _show(settings: Settings, request: Request) -> Response:
    shown = await _found(settings, request)
    return _told(ShownRequest.shown(shown.request, shown.narrowings))


async def _found(settings: Settings, request: Request) -> Shown:
    try:
        return await run_in_threadpool(show_request, settings, request.path_params["id"])
    except UsageError:
        raise HTTPException(404, "there is no such request") from None


async def _narrow(settings: Settings, request: Request) -> Response:
    said = await _body(request, NarrowedTo)
    one = (await _found(settings, request)).request
    narrows = partial(narrow_request, settings, one.id, said.wish(), by=said.by, reason=said.reason, asked=said.asked)
    try:
        await run_in_threadpool(narrows)
    except UsageError as error:
        raise HTTPException(409, error.what) from None
    return await _show(settings, request)


async def _withdraw(settings: Settings, request: Request) -> Response:
    said = await _body(request, Withdrawal)
    one = (await _found(settings, request)).request
    if one.state is RequestState.WITHDRAWN:  # sent again
        return _told(WithdrawnRequest(id=one.id, state=one.state, released=()))
    try:
        ended = await run_in_threadpool(partial(withdraw_request, settings, one.id, by=said.by, reason=said.reason))
    except UsageError as error:
        raise HTTPException(409, error.what) from None
    return _told(WithdrawnRequest(id=one.id, state=RequestState.WITHDRAWN, released=ended.released))


async def _document(request: Request) -> Response:
    return JSONResponse(document(OPERATIONS))
