"""The steps of a lakeFS repository, and what reviewers must know of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.lakefs.repository_state import LakefsRules, LakefsState
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.plan import Override, Precondition
from planners.step_drafts import CopyDraft, Draft, StepWriter
from planners.stores.lakefs.object_retention import LettingGo, Rules

PATIENCE = timedelta(days=7)
"""How long after its day an object may still be there before the run calls it an error."""


def preconditions(state: LakefsState) -> tuple[Precondition, ...]:
    """Storage, rules, branches and tags are those that the dates were worked out for."""
    return (Precondition(kind="lakefs", target=state.location, expected=state.fingerprint()),)


def lakefs_steps(item: CopyDraft, state: LakefsState, going: LettingGo, plan_id: str) -> tuple[Draft, ...]:
    """The steps of one repository."""
    base = {"server": state.server, "repository": state.declared.name, "storage": state.storage, "plan_id": plan_id}
    steps = StepWriter(item.copy, "lakefs", base)
    if going.rewrites:
        steps.add(
            Action.LAKEFS_REWRITE,
            "every branch has its own head: the step rewrites the objects without the person, and commits on each "
            "branch that contains them",
            hazards=("C1", "F3"),
            verification="no head of a branch references an object that contains the person; other paths are unchanged",
            irreversible=False,
            format=state.declared.format.value,
            branches=[
                {"branch": branch, "objects": [{"path": p, "address": a} for p, a in sorted(paths.items())]}
                for branch, paths in sorted(going.rewrites.items())
            ],
        )
    changed = going.before != going.change.rules
    before, after = _told(going.before), _told(going.change.rules)
    if changed:
        steps.add(
            Action.LAKEFS_SET_RULES,
            _cost(going),
            hazards=("C1",),
            verification="these rules are in force",
            before=before,
            after=after,
        )
    steps.add(
        Action.LAKEFS_AWAIT_COLLECTION,
        f"{state.declared.owner} runs lakeFS's garbage collection when no active commit references the objects; only "
        "this collection can remove them safely"
        + ("; the run calls it by the declared command" if state.declared.collect else ""),
        hazards=("C1",),
        verification="none of the objects can be read through lakeFS, and the storage has none of them in any version",
        irreversible=bool(state.declared.collect),
        not_before=going.collectable,
        owner=state.declared.owner,
        collect_days=state.declared.collect_days,
        command=[word.replace("{repository}", state.declared.name) for word in state.declared.collect],
        planned=iso(going.seen),
        until=iso(going.collectable),
        give_up=iso(going.collectable + timedelta(days=state.declared.collect_days) + PATIENCE),
        holders=sorted(going.holders),
        objects=[_shown(address, shown) for address, shown in sorted(going.addresses.items())],
    )
    if changed:
        steps.add(
            Action.LAKEFS_RESTORE_RULES,
            "the lowered retention must not remove more history",
            hazards=("C1",),
            verification="the rules are as before, or as somebody else set them in the meantime",
            irreversible=False,
            before=before,
            after=after,
        )
    return tuple(steps.drafts)


def _shown(address: str, shown: tuple[str, str] | None) -> dict[str, Any]:
    return {"address": address, "path": shown[0] if shown else None, "ref": shown[1] if shown else None}


def _told(rules: Rules | None) -> dict[str, Any] | None:
    return None if rules is None else {"default_days": rules.default_days, "branches": dict(rules.branches)}


def _cost(going: LettingGo) -> str:
    others = len(going.expires)
    return (
        "lakeFS sets retention for a whole repository, not for single objects. "
        f"{counted(others, 'commit expires', 'commits expire')} earlier, and {counted(len(going.lost), 'object')} "
        "without the person that only these commits reference will be lost; nothing can restore these objects"
    )


def lowered_retention(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """Retention in lakeFS that the plan sets aside, for reviewers."""
    found = []
    for item in items:
        going, state = item.letting_go, item.lakefs
        if going is None or state is None or not item.drafts or going.before == going.change.rules:
            continue
        before = LakefsRules.model_validate(_told(going.before)).told() if going.before else "no rules"
        after = LakefsRules.model_validate(_told(going.change.rules)).told()
        found.append(Override(kind="lakefs_retention", reason=f"{state.location}: {before} → {after}; {_cost(going)}"))
    return tuple(sorted(found, key=lambda o: o.reason))
