"""The order between copies, as small rules over drafts; the result is a checked DAG.

Inside a copy the format's own rule has the order: rewrite before expiry before orphan sweep before log clean-up,
a verification last. Here it is about what must wait for another copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from pii_tracer.errors import PlanError
from pii_tracer.model import CopyKind
from pii_tracer.plan import Action, Precondition
from planners.drafts import CopyDraft, Draft

KEYS_FIRST = "keys/01-stage"
KEYS_LAST = "keys/99-drop"

_ROWS = {
    Action.ICEBERG_DELETE_ROWS,
    Action.ICEBERG_REBUILD,
    Action.DELTA_DELETE_ROWS,
    Action.DELTA_REBUILD,
    Action.HUDI_DELETE_ROWS,
    Action.HUDI_REBUILD,
    Action.FILES_REWRITE,
    Action.FILES_REBUILD,
}
_PHYSICAL = {Action.DELTA_PURGE, Action.ICEBERG_REWRITE_FILES, Action.ICEBERG_REWRITE_MANIFESTS, Action.HUDI_COMPACT}

Extra = dict[str, set[str]]
"""Draft id -> ids of drafts it must come after."""


def order(
    items: Sequence[CopyDraft], key_sets: Sequence[str], before_all: tuple[Precondition, ...] = ()
) -> tuple[Draft, ...]:
    """All drafts in one topological order, with every dependency written down.

    before_all: what must hold before the very first step.

    Raises:
        PlanError: the rules contradict each other (a cyclic derivation); the cycle is named.
    """
    extra: Extra = {}
    for rule in RULES:
        for later, earlier in rule(items):
            extra.setdefault(later, set()).add(earlier)
    drafts = [
        replace(d, after=tuple(sorted({*d.after, *extra.get(d.id, ()), *(() if d.after else (KEYS_FIRST,))})))
        for item in items
        for d in item.drafts
    ]
    stage, drop = _keys(key_sets, [d.id for d in drafts if d.action is Action.VERIFY_COPY])
    stage = replace(stage, preconditions=before_all)
    return _sorted([stage, *drafts, drop])


def _keys(key_sets: Sequence[str], verifications: Sequence[str]) -> tuple[Draft, Draft]:
    stage = Draft(
        id=KEYS_FIRST,
        copy=None,
        action=Action.STAGE_KEYS,
        executor="keys",
        parameters={"key_sets": sorted(key_sets)},
        hazards=("D5", "E1"),
        irreversible=False,
        verification="every key set opens and is not empty",
        reason="keys were resolved from the source at planning; they are opened from the sealed manifest",
    )
    drop = Draft(
        id=KEYS_LAST,
        copy=None,
        action=Action.DROP_KEYS,
        executor="keys",
        parameters={},
        hazards=("D5", "E1"),
        irreversible=False,
        verification="no key view is left in the session",
        reason="the key views must not outlive the run",
        after=tuple(sorted(verifications)),
    )
    return stage, drop


Pairs = Iterable[tuple[str, str]]


def upstream_first(items: Sequence[CopyDraft]) -> Pairs:
    """Rows leave upstream before downstream, so that no job refills what was erased."""
    by_dataset = {str(i.copy.dataset): i for i in items if i.state and i.copy.kind is not CopyKind.TABLE_HISTORY}
    for item in items:
        upstream = by_dataset.get(item.upstream or "")
        if upstream is None or upstream is item:
            continue
        for later in _first(item, _ROWS):
            for earlier in _first(upstream, _ROWS):
                yield later, earlier


def rebuild_after_inputs(items: Sequence[CopyDraft]) -> Pairs:
    """A table that is rebuilt reads its inputs: all copies upstream of it are erased in their rows first."""
    rows = {str(i.copy.dataset): _first(i, _ROWS) for i in items if i.copy.kind is not CopyKind.TABLE_HISTORY}
    for item in items:
        if item.rebuild_sql is None or item.carriage is None:
            continue
        for hop in item.carriage.hops[:-1]:
            for later in _first(item, _ROWS):
                for earlier in rows.get(str(hop), ()):
                    yield later, earlier


def clones_before_origin(items: Sequence[CopyDraft]) -> Pairs:
    """A shallow clone reads its origin's files: it is finished before the origin's files are touched (D8)."""
    for clone in items:
        if clone.state is None or clone.state.clone_of is None or not clone.drafts:
            continue
        for origin in items:
            if origin.copy.location == clone.state.clone_of:
                for later in _first(origin, _PHYSICAL):
                    yield later, clone.drafts[-1].id


def history_before_expiry(items: Sequence[CopyDraft]) -> Pairs:
    """Branches and tags are rewritten after the table's rows are deleted and before its snapshots expire (I3)."""
    by_id = {item.copy.id: item for item in items}
    for history in items:
        if history.copy.kind is not CopyKind.TABLE_HISTORY or not history.drafts:
            continue
        table = by_id[history.copy.origin or ""]
        for earlier in _first(table, _ROWS):
            yield history.drafts[0].id, earlier
        for later in _first(table, {Action.ICEBERG_REWRITE_MANIFESTS}):
            yield later, history.drafts[0].id


def replicas_after_origin(items: Sequence[CopyDraft]) -> Pairs:
    """A replica waits for the rewritten objects; old versions go when the new ones are in place."""
    by_id = {item.copy.id: item for item in items}
    for item in items:
        if item.copy.kind not in (CopyKind.REPLICA, CopyKind.OBJECT_VERSION) or not item.drafts:
            continue
        for earlier in _first(by_id[item.copy.origin or ""], {Action.S3_REWRITE_ARCHIVE}):
            yield item.drafts[0].id, earlier


def bytes_after_everything_of_the_copy(items: Sequence[CopyDraft]) -> Pairs:
    """A history's bytes leave with its table's expiry, so it is verified after that."""
    by_id = {item.copy.id: item for item in items}
    for history in items:
        if history.copy.kind is CopyKind.TABLE_HISTORY and history.drafts:
            table = by_id[history.copy.origin or ""]
            if len(table.drafts) > 1:
                yield history.drafts[-1].id, table.drafts[-2].id


RULES = (
    upstream_first,
    rebuild_after_inputs,
    clones_before_origin,
    history_before_expiry,
    replicas_after_origin,
    bytes_after_everything_of_the_copy,
)


def _first(item: CopyDraft, actions: set[Action]) -> tuple[str, ...]:
    for draft in item.drafts:
        if draft.action in actions:
            return (draft.id,)
    return ()


def _sorted(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Topological, and otherwise in the order the drafts were written."""
    position = {draft.id: n for n, draft in enumerate(drafts)}
    by_id = {draft.id: draft for draft in drafts}
    sorter: TopologicalSorter[str] = TopologicalSorter({d.id: d.after for d in drafts})
    try:
        sorter.prepare()
    except CycleError as error:
        raise PlanError(
            "the derivations contradict each other: " + " → ".join(error.args[1]),
            todo="break the cycle in the estate's jobs, or declare one of them as a separate source",
        ) from None
    result: list[Draft] = []
    ready: list[str] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=lambda i: position[i])
        done = ready.pop(0)
        result.append(by_id[done])
        sorter.done(done)
    return tuple(result)
