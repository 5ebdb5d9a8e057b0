"""What a recipient is told: whom it has to erase, by which identifiers. Values of persons go nowhere else."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pii_tracer.app.recipients.recipient_states import Told
from pii_tracer.config.passing_on.recipients import How, Recipient
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import ErasurePlan

_ASKED = (
    "These persons asked for the erasure of their data. Erase the data that you got of them from us{where}."
    " Pass this on to those whom you gave it to. Then confirm it, with this notice's id."
)


Rows = Sequence[Mapping[str, Any]]


def rows_of(
    recipient: Recipient, plan: ErasurePlan, mine: Collection[str], keys: Mapping[str, KeySet]
) -> tuple[Rows, tuple[str, ...]]:
    """What a recipient is told of each request whose person is of a kind that it knows (`SUBJECT` of its identifiers),
    and the ids of those of whom the sealed manifest has no value by which it could find them.

    mine: ids of the requests that nobody ended.
    """
    kinds = {name.partition(".")[0] for name in recipient.identifiers}
    known = {who for keys_ in keys.values() if keys_.name.partition(".")[0] in kinds for who, _ in keys_.values}
    values: dict[str, dict[str, list[str]]] = {}
    for name in recipient.identifiers:
        for who, value in keys[name].values if name in keys else ():
            values.setdefault(who, {}).setdefault(name, []).append(value)
    asked = [request for request in plan.requests if request.id in mine]
    rows = [
        {"request": request.id, "law": request.law, "identifiers": values[request.subject]}
        for request in asked
        if request.subject in values
    ]
    return rows, tuple(request.id for request in asked if request.subject in known - values.keys())


def notice_of(recipient: Recipient, told: Told, estate: str, data: Sequence[str], rows: Rows) -> bytes:
    """The notice, the same bytes whenever it is made for the same `told`. data: what is to be erased; empty for all."""
    head = {"notice": told.notice, "recipient": recipient.name, "from": estate, "date": iso(told.begun)}
    head["confirm_within_days"] = str(recipient.confirm_days)
    if recipient.how is How.EMAIL:
        return ("\n".join(_lines(head, data, rows)) + "\n").encode()
    return (
        json.dumps({**head, "asked": _asked(data), "data": data, "persons": rows}, ensure_ascii=False, indent=1) + "\n"
    ).encode()


def _asked(data: Sequence[str]) -> str:
    return _ASKED.format(where=f" in {', '.join(data)}, and there alone" if data else "")


def _lines(head: Mapping[str, str], data: Sequence[str], rows: Rows) -> Iterator[str]:
    yield f"To: {head['recipient']}"
    yield f"Subject: Erasure of personal data, notice {head['notice']}"
    yield ""
    yield _asked(data)
    yield f"Please confirm within {head['confirm_within_days']} days of this notice ({head['date']}, {head['from']})."
    for row in rows:
        yield ""
        yield f"Request {row['request']} ({row['law']}):"
        for name, values in row["identifiers"].items():
            yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for value in values)
