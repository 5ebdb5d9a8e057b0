"""Deadlines that laws set for an erasure request. Facts to show, not legal advice."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.model.errors import PlanError


@dataclass(frozen=True)
class Law:
    """A law's own time for answering an erasure request: `months` if it counts months, else `days`."""

    name: str
    citation: str
    days: int = 0
    months: int = 0


LAWS = {
    "DPDP": Law(
        "DPDP",
        "Digital Personal Data Protection Act 2023 (India), s. 12(3) with s. 8(7); the Act names no number of days,"
        " 30 days is working practice",
        days=30,
    ),
    "GDPR": Law("GDPR", "Regulation (EU) 2016/679, Art. 17(1) with Art. 12(3): one month", months=1),
    "CCPA": Law("CCPA", "California Consumer Privacy Act, s. 1798.105 with s. 1798.130(a)(2): 45 days", days=45),
}


def law(name: str, where: str) -> Law:
    """The law of this name.

    Raises:
        PlanError: not known.
    """
    try:
        return LAWS[name]
    except KeyError:
        known = ", ".join(sorted(LAWS))
        raise PlanError(
            f"the law of the request is not known; known are {known}", where=where, todo="correct `law`"
        ) from None


def deadline(rule: Law, received: datetime) -> datetime:
    """When the request must be done. A month ends on the same day of the next month, or on its last day
    (Regulation (EEC, Euratom) No 1182/71, Art. 3(2)(c))."""
    if not rule.months:
        return received + timedelta(days=rule.days)
    month = received.month - 1 + rule.months
    year, month = received.year + month // 12, month % 12 + 1
    return received.replace(year=year, month=month, day=min(received.day, calendar.monthrange(year, month)[1]))
