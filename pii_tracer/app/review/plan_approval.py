"""Approving a plan: its exact bytes are signed, and a value of the persons is never signed with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.planning.plan_files import key_sets_at_hand
from pii_tracer.app.settings import Settings, moment
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import NotApproved, UsageError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.review.dsse import PrivateKey
from pii_tracer.review.plan_file import LoadedPlan, load_plan
from pii_tracer.review.policy_rules import why_unapplyable

if TYPE_CHECKING:
    from pii_tracer.model.datasets import KeySet
    from pii_tracer.scan.value_forms import Patterns

_TOGETHER = 10_000
"""Values that texts of people are searched for together, which take some 150 MiB."""
_FEW = 50
"""Of so many values all writings are made; of more, those that are met. For a few words that takes a tenth."""


def approve(
    settings: Settings,
    plan_file: Path,
    *,
    approver: str,
    role: str,
    reason: str,
    key: Path | None = None,
    ssh_key: Path | None = None,
    unsigned: bool = False,
    hours: int = 24,
    policy: Path | None = None,
) -> Path:
    """Sign the exact bytes of a plan, by the key in a PEM file or an SSH key, and return the approval's path.

    Raises:
        NotApproved: `apply` would refuse the plan whoever signed it, or the approval's file is something else.
        ReviewError: plan or key cannot be read, or a value of the persons stands in what is signed.
        UsageError: none or both keys were named; unsigned where it would not count; longer than the policy allows.
    """
    from pii_tracer.app.execution.approvals import refuse_unsigned, signing_key

    if unsigned:
        refuse_unsigned(settings.estate(), key or ssh_key)
    signer = None if unsigned else signing_key(key, ssh_key)
    return sign_plan(settings, load_plan(plan_file), plan_file, policy, approver, role, reason, signer, hours)


def sign_plan(
    settings: Settings,
    loaded: LoadedPlan,
    plan_file: Path,
    policy: Path | None,
    approver: str,
    role: str,
    reason: str,
    key: PrivateKey | None,
    hours: int,
) -> Path:
    """Write an approval beside the plan and return its path. Without a key it is unsigned.

    Raises:
        NotApproved: `apply` would refuse the plan whoever signed it.
            Or the approval's file is something else.
        ReviewError: a value of the persons stands in what is signed.
        UsageError: it would live longer than the policy allows.
    """
    import secrets

    from pii_tracer.app.execution.approvals import approval_path, detached
    from pii_tracer.app.intake.planned_requests import other_wishes
    from pii_tracer.common.atomic_files import write_atomic
    from pii_tracer.config.estate_file import file_digest
    from pii_tracer.review.approval import approve as sign

    rules, policy_file = settings.policy(policy)
    if hours > rules.max_approval_hours:
        raise UsageError(
            f"the policy lets an approval be valid for {counted(rules.max_approval_hours, 'hour')} at most",
            todo="choose fewer `--hours`",
        )
    _refuse_unapplyable(loaded.plan)
    if others := other_wishes(settings, loaded.plan, partial(key_sets_at_hand, settings, loaded.plan, plan_file)):
        raise NotApproved(
            f"the person of the request {others[0]} asks to keep other data now than this plan keeps",
            where=loaded.plan.plan_id,
            todo=f"if the request store has it, `pii-tracer requests release {loaded.plan.plan_id}`; then plan again",
        )
    _refuse_telling(settings, loaded.plan, plan_file, (approver, role, reason))
    now = moment(None)
    envelope = sign(
        loaded,
        key,
        approver=approver,
        role=role,
        reason=reason,
        expires=now + timedelta(hours=hours),
        policy=rules,
        policy_digest=file_digest(policy_file),
        production=key is None and settings.estate().environment == "production",
        now=now,
        nonce=secrets.token_hex(16),
    )
    path = approval_path(plan_file, approver, role)
    for ending in (".signed", ".signed.sig"):  # those of an earlier approval
        path.with_suffix(ending).unlink(missing_ok=True)
    for ending, data in detached(envelope).items():
        write_atomic(path.with_suffix(ending), data)
    write_atomic(path, envelope)
    return path


def _refuse_telling(settings: Settings, made: ErasurePlan, plan_file: Path, texts: tuple[str, str, str]) -> None:
    """Refuse a person's value where the approver can know it."""
    from pii_tracer.app.planning.value_masking import refuse_telling_approval

    refuse_telling_approval(*texts, patterns_at_hand(settings, made, plan_file, texts))


def patterns_at_hand(
    settings: Settings, made: ErasurePlan, plan_file: Path, texts: Sequence[str]
) -> Iterator[Patterns]:
    """All forms of the persons' values that may stand in a few short texts: of some values at a time, since there can
    be very many. None without the estate key and the manifest. Who signs need not have them: the run has, and refuses
    what tells a value."""
    from pii_tracer.scan.value_forms import Patterns

    near = _near(texts, tuple(key_sets_at_hand(settings, made, plan_file)))
    for some in _some_at_a_time(near):
        yield Patterns(some, few=_FEW)


def _near(texts: Sequence[str], key_sets: Sequence[KeySet]) -> Iterator[KeySet]:
    """The key sets with those values alone that may stand in the texts."""
    from pii_tracer.scan.many_values.short_text_candidates import may_stand_in

    for key_set in key_sets:
        if key_set.columns:
            continue
        near = sorted(may_stand_in(texts, key_set))
        yield key_set.model_copy(update={"values": tuple(key_set.values[number] for number in near)})


def _some_at_a_time(key_sets: Iterable[KeySet]) -> Iterator[list[KeySet]]:
    """The key sets in parts of at most `_TOGETHER` values, as far as bytes are searched for them."""
    together: list[KeySet] = []
    room = _TOGETHER
    for key_set in key_sets:
        values = () if key_set.columns else key_set.values
        while values:
            taken, values = values[:room], values[room:]
            together.append(key_set.model_copy(update={"values": taken}))
            room -= len(taken)
            if not room:
                yield together
                together, room = [], _TOGETHER
    if together:
        yield together


def _refuse_unapplyable(made: ErasurePlan) -> None:
    if made.applyable:
        return
    if number := sum(gap.waiver is None and gap.kind != GapKind.LEFT_OUT for gap in made.gaps):
        raise NotApproved(
            f"{counted(number, 'gap is', 'gaps are')} open",
            where=made.plan_id,
            todo="see `pii-tracer check`; close the gaps or waive them, plan again, and approve that plan",
        )
    raise NotApproved(
        why_unapplyable(made), where=made.plan_id, todo="remove the cause (docs/gaps.md#blocked-copies), and plan again"
    )
