"""What a recipient is told: whom it has to erase, by which identifiers. Values of persons go nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pii_tracer.app.recipients.told import Told
from pii_tracer.common.plurals import counted
from pii_tracer.config.passing_on.recipients import How, Recipient
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import ErasurePlan

_ASKED = (
    "These persons asked for the erasure of their data. Erase the data that you got of them from us, and pass this on"
    " to those whom you gave it to. Then confirm it, with this notice's id."
)


Rows = Sequence[Mapping[str, Any]]


def rows_of(recipient: Recipient, plan: ErasurePlan, keys: Mapping[str, KeySet]) -> Rows:
    """What a recipient is told of each request whose person is of a kind that it knows (`SUBJECT` of its identifiers).

    Raises:
        PlanError: the sealed manifest has no value by which it could find one of these persons.
    """
    kinds = {name.partition(".")[0] for name in recipient.identifiers}
    mine = {who for keys_ in keys.values() if keys_.name.partition(".")[0] in kinds for who, _ in keys_.values}
    values: dict[str, dict[str, list[str]]] = {}
    for name in recipient.identifiers:
        for who, value in keys[name].values if name in keys else ():
            values.setdefault(who, {}).setdefault(name, []).append(value)
    if missing := [request.id for request in plan.requests if request.subject in mine - values.keys()]:
        raise PlanError(
            f"of {counted(len(missing), 'request')}, first {missing[0]}, nothing is known that {recipient.name} gets",
            where=f"recipients: {recipient.name}",
            todo="name further columns under its `identifiers`, such as the subject's key",
        )
    return [
        {"request": request.id, "law": request.law, "identifiers": values[request.subject]}
        for request in plan.requests
        if request.subject in values
    ]


def notice_of(recipient: Recipient, told: Told, estate: str, rows: Rows) -> bytes:
    """The notice, the same bytes whenever it is made for the same `told`."""
    head = {"notice": told.notice, "recipient": recipient.name, "from": estate, "date": iso(told.begun)}
    head["confirm_within_days"] = str(recipient.confirm_days)
    if recipient.how is How.EMAIL:
        return ("\n".join(_lines(head, rows)) + "\n").encode()
    return (json.dumps({**head, "asked": _ASKED, "persons": rows}, ensure_ascii=False, indent=1) + "\n").encode()


def _lines(head: Mapping[str, str], rows: Rows) -> Iterator[str]:
    yield f"To: {head['recipient']}"
    yield f"Subject: Erasure of personal data, notice {head['notice']}"
    yield ""
    yield _ASKED
    yield f"Please confirm within {head['confirm_within_days']} days of this notice ({head['date']}, {head['from']})."
    for row in rows:
        yield ""
        yield f"Request {row['request']} ({row['law']}):"
        for name, values in row["identifiers"].items():
            yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for value in values)
