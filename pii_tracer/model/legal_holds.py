"""Legal holds and retention duties: data that must stay although a person asks for its erasure. Declared, not guessed.

Which law holds what is the estate owner's word: `basis` and `citation` are shown as they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import CopyKind, Frozen, Said, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.timestamps import Moment

if TYPE_CHECKING:
    from pii_tracer.model.plan import Copy, ErasurePlan

LATE_BEGIN = timedelta(days=30)
"""How much later than planned a run may begin that misses the deadline anyway: it is reviewed and approved first."""


def may_begin_until(deadline: datetime, finish: datetime) -> datetime:
    """Until when a hold that begins is reckoned with by a plan that ends at `finish`."""
    return finish + LATE_BEGIN if finish > deadline else deadline


class HoldKind(StrEnum):
    """Why data is held: an order or a dispute, a law that sets a floor, or the person herself (in no estate file)."""

    LEGAL_HOLD = "legal_hold"
    RETENTION_DUTY = "retention_duty"
    OWN_REQUEST = "own_request"


class Hold(Frozen):
    """One hold.

    datasets: as Spark SQL names them, or the location of a folder or bucket prefix. columns, categories: where only
    these are held; empty for whole datasets. requests: ids of the requests it concerns; empty for everybody's.
    from, until: with a time zone; `until: indefinite` where nobody knows yet. approver: who answers for it.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    kind: HoldKind
    datasets: tuple[str, ...] = Field(min_length=1)
    columns: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    basis: Said
    citation: str = Field(min_length=1)
    from_: Moment = Field(alias="from")
    until: Moment | Literal["indefinite"]
    approver: Said

    @model_validator(mode="after")
    def _dated(self) -> Hold:
        if self.ends is not None and self.ends <= self.from_:
            raise ValueError("`until` is not after `from`: the hold would never hold")
        if any(not name.strip() for name in (*self.datasets, *self.columns, *self.categories)):
            raise ValueError("an empty name holds nothing")
        return self

    @property
    def ends(self) -> datetime | None:
        """When it lapses; None where nobody knows."""
        return None if isinstance(self.until, str) else self.until

    def in_force(self, at: datetime) -> bool:
        """Whether it holds at a moment."""
        return self.from_ <= at and (self.ends is None or at < self.ends)

    def counts(self, as_of: datetime, until: datetime) -> bool:
        """Whether a plan of a day keeps what is held, if its run may last until a moment."""
        return (self.ends is None or self.ends > as_of) and self.from_ <= until

    def concerns(self, requests: Iterable[str]) -> bool:
        """Whether it is about any of these requests."""
        return not self.requests or not set(self.requests).isdisjoint(requests)

    def overlaps(self, other: Hold) -> bool:
        """Whether both are in force at some time."""
        return (other.ends is None or self.from_ < other.ends) and (self.ends is None or other.from_ < self.ends)


def contradiction(holds: Sequence[Hold]) -> str | None:
    """What is wrong with an estate file's holds, or None: one id twice, one duty on one dataset with two ends, or a
    person's own request, which is in the request store alone.

    Two different duties on one dataset do not contradict each other: the later end counts.
    """
    for hold in holds:
        if hold.kind is HoldKind.OWN_REQUEST:
            return f"the hold {hold.id} is a person's own request: use `pii-tracer requests narrow` for it"
    for one, other in combinations(holds, 2):
        if one.id == other.id:
            return f"two holds have the id {one.id}"
        shared = {d.lower() for d in one.datasets} & {d.lower() for d in other.datasets}
        if shared and _duty(one) == _duty(other) and one.ends != other.ends and one.overlaps(other):
            return f"the holds {one.id} and {other.id} are the same duty on {min(shared)} and end on different days"
    return None


def own_holds_in(plan: ErasurePlan, *, of_copies: bool = False) -> frozenset[str]:
    """The ids of the holds by which the persons of a plan asked to keep data. of_copies: those that keep something."""
    own = (hold for hold in plan.holds if hold.kind == HoldKind.OWN_REQUEST)
    return frozenset(hold.id for hold in own if hold.copies or not of_copies)


def kept_as_asked(plan: ErasurePlan, copy: Copy) -> bool:
    """Whether a copy stays since the persons asked to keep just this: not along with another one, and no more of it."""
    own, rest = own_holds_in(plan), {gap.dataset for gap in plan.gaps if gap.kind == GapKind.HOLD_KEEPS_REST}
    return (
        copy.strategy is Strategy.EXEMPT
        and copy.exemption is not None
        and own.issuperset(copy.exemption.holds)
        and copy.origin is None
        and copy.kind is not CopyKind.KEY
        and copy.dataset not in rest
    )


def kept_unasked(plan: ErasurePlan) -> tuple[Copy, ...]:
    """Copies that stay by what the persons of a plan asked to keep alone, and that they did not ask to keep."""
    own = own_holds_in(plan)
    held = (copy for copy in plan.copies if copy.exemption and own.issuperset(copy.exemption.holds))
    return tuple(copy for copy in held if not kept_as_asked(plan, copy))


def _duty(hold: Hold) -> tuple[object, ...]:
    held = (set(hold.columns), set(hold.categories), set(hold.requests))
    return (hold.kind, hold.basis.casefold(), hold.citation.casefold(), *held)
