"""Many requests in a plan file: the file stays small, and what it says in the open is what it holds."""

from __future__ import annotations

import base64
import json
import random
import uuid
import zlib
from datetime import timedelta, timezone
from typing import Any

import pytest

from pii_tracer.model.errors import ReviewError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.planned_requests import LISTED, PlannedRequest
from pii_tracer.review.plan_file import parse_plan
from tests.review.plans import DEADLINE, NOW, plan

_DRAWN = random.Random(7)


def _requests(count: int) -> tuple[PlannedRequest, ...]:
    return tuple(
        PlannedRequest(
            id=str(uuid.UUID(int=_DRAWN.getrandbits(128))),
            subject=f"subj_{_DRAWN.getrandbits(64):016x}",
            law="gdpr" if number % 3 else "lgpd",
            citation="art. 17",
            received=NOW - timedelta(seconds=_DRAWN.randrange(86_400)),
            deadline=DEADLINE,
        )
        for number in range(count)
    )


@pytest.fixture(scope="module")
def many() -> ErasurePlan:
    return plan(requests=_requests(LISTED + 1))


def _file(made: ErasurePlan) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(made.to_bytes())
    return data


def test_few_requests_are_listed_and_more_are_packed(many: ErasurePlan) -> None:
    assert isinstance(_file(plan(requests=_requests(LISTED)))["requests"], list)
    packed = _file(many)["requests"]
    assert packed["count"] == LISTED + 1
    assert packed["laws"] == {"gdpr": 667, "lgpd": 334}


def test_what_was_packed_is_read_as_it_was_written(many: ErasurePlan) -> None:
    raw = many.to_bytes()
    read = parse_plan(raw, "a.plan.json").plan
    assert read.requests == many.requests
    assert read.to_bytes() == raw


def test_the_first_dates_are_those_of_the_moments_and_not_of_the_texts() -> None:
    zone = timezone(timedelta(hours=14))
    first = DEADLINE - timedelta(minutes=30)
    some = list(_requests(LISTED + 1))
    some[3] = some[3].model_copy(
        update={"deadline": first.astimezone(zone), "received": NOW + timedelta(microseconds=5)}
    )
    made = plan(requests=tuple(some))
    shown = _file(made)["requests"]
    assert shown["first_deadline"] == first.isoformat().replace("+00:00", "Z")
    assert shown["last_received"] == (NOW + timedelta(microseconds=5)).isoformat().replace("+00:00", "Z")
    assert ErasurePlan.model_validate_json(made.to_bytes()).requests == made.requests


def test_the_requests_of_a_hundred_thousand_persons_take_less_than_five_mebibytes() -> None:
    assert len(plan(requests=_requests(100_000)).to_bytes()) < 5 << 20


def _columns(packed: dict[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed["packed"])))
    return columns


def _shown(columns: dict[str, Any]) -> str:
    return base64.b64encode(zlib.compress(json.dumps(columns).encode())).decode()


def _without_one(packed: dict[str, Any]) -> None:
    packed["packed"] = _shown({name: values[1:] for name, values in _columns(packed).items()})


def _of_another_law(packed: dict[str, Any]) -> None:
    columns = _columns(packed)
    packed["packed"] = _shown({**columns, "law": ["gdpr", *columns["law"][1:]]})


def _ragged(packed: dict[str, Any]) -> None:
    columns = _columns(packed)
    packed["packed"] = _shown({**columns, "subject": columns["subject"][1:]})


def _with_more_behind(packed: dict[str, Any]) -> None:
    packed["packed"] = base64.b64encode(base64.b64decode(packed["packed"]) + b"more").decode()


def _cut_off(packed: dict[str, Any]) -> None:
    packed["packed"] = packed["packed"][: len(packed["packed"]) // 8 * 4]


def _later(packed: dict[str, Any]) -> None:
    packed["first_deadline"] = "2099-01-01T00:00:00Z"


def _without_columns(packed: dict[str, Any]) -> None:
    packed["packed"] = base64.b64encode(zlib.compress(b"[]")).decode()


def _in_another_zone(packed: dict[str, Any]) -> None:
    """The file would show another request's deadline as the first one."""
    columns = _columns(packed)
    early = (DEADLINE - timedelta(minutes=1)).astimezone(timezone(timedelta(hours=14))).isoformat()
    packed["packed"] = _shown({**columns, "deadline": [early, *columns["deadline"][1:]]})


def _in_seconds(packed: dict[str, Any]) -> None:
    columns = _columns(packed)
    packed["packed"] = _shown({**columns, "deadline": ["86400", *columns["deadline"][1:]]})


def _letters_for_rows(packed: dict[str, Any]) -> None:
    packed["packed"] = _shown({**_columns(packed), "id": "x" * packed["count"]})


def _nested(packed: dict[str, Any]) -> None:
    packed["packed"] = base64.b64encode(zlib.compress(b"[" * 200_000)).decode()


def _much(packed: dict[str, Any]) -> None:
    packed["packed"] = base64.b64encode(zlib.compress(b'{"id":["' + b"x" * (4 << 20) + b'"]}')).decode()


def _no_whole_number(packed: dict[str, Any]) -> None:
    packed["count"] = float(packed["count"])


@pytest.mark.parametrize(
    "change",
    [
        _in_another_zone,
        _in_seconds,
        _letters_for_rows,
        _nested,
        _much,
        _no_whole_number,
        _without_one,
        _of_another_law,
        _ragged,
        _with_more_behind,
        _cut_off,
        _later,
        _without_columns,
    ],
)
def test_a_file_that_says_otherwise_in_the_open_is_refused(many: ErasurePlan, change: Any) -> None:
    data = _file(many)
    change(data["requests"])
    with pytest.raises(ReviewError, match="the packed requests"):
        parse_plan(json.dumps(data).encode(), "a.plan.json")


def test_what_is_wrong_in_a_packed_request_is_named(many: ErasurePlan) -> None:
    data = _file(many)
    columns = _columns(data["requests"])
    data["requests"]["packed"] = _shown({**columns, "subject": [None, *columns["subject"][1:]]})
    with pytest.raises(ReviewError, match=r"requests\.0\.subject"):
        parse_plan(json.dumps(data).encode(), "a.plan.json")
