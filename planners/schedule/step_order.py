"""The order between copies, as small rules over drafts; the result is a checked DAG.

Inside a copy the format's own rule has the order: rewrite before expiry before orphan sweep before log clean-up,
a verification last. Here it is about what must wait for another copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.common.topological_order import Circle, in_order
from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.lake.stores.hdfs.places import HdfsKind
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import Precondition
from planners.copies.backups import backups_after_what_is_in_them
from planners.keys.key_table_lineage import unreadable_after_keys
from planners.step_drafts import CopyDraft, Draft

KEYS_FIRST = "keys/01-stage"
KEYS_LAST = "keys/99-drop"
SUPPRESSION = "suppression/01-suppress"

_OTHER_ROWS = frozenset(
    {
        Action.KAFKA_TOMBSTONE,
        Action.KAFKA_REWRITE_TOPIC,
        Action.KAFKA_DELETE_PREFIX,
        Action.LAKEFS_REWRITE,
        Action.HDFS_REWRITE,
        Action.OBJECT_REWRITE,
    }
)
"""What is done to the records of topics and the objects of repositories."""
_HANGING = (CopyKind.TABLE_HISTORY, CopyKind.OBJECT_VERSION)

Extra = dict[str, set[str]]
"""Draft id -> ids of drafts it must come after."""


def order(
    items: Sequence[CopyDraft],
    key_sets: Sequence[str],
    before_all: tuple[Precondition, ...] = (),
    suppress: Mapping[str, object] | None = None,
    tasks: Sequence[Draft] = (),
) -> tuple[Draft, ...]:
    """All drafts in one topological order, with every dependency written down.

    before_all: what must hold before the very first step. suppress: parameters of the suppression entry.
    tasks: what people do by hand.

    Raises:
        PlanError: the rules contradict each other (a cyclic derivation); the cycle is named.
    """
    extra: Extra = {}
    for rule in RULES:
        for later, earlier in rule(items):
            extra.setdefault(later, set()).add(earlier)
    drafts = [_after(task, ()) for task in tasks]
    drafts += [_after(d, extra.get(d.id, ())) for item in items for d in item.drafts]
    verifications = sorted(d.id for d in drafts if d.action is Action.VERIFY_COPY)
    last = [_suppression(dict(suppress), verifications)] if suppress and verifications else []
    stage, drop = _keys(key_sets, [*verifications, *(d.id for d in last)])
    stage = replace(stage, preconditions=before_all)
    return _sorted([stage, *drafts, *last, drop])


def _after(draft: Draft, earlier: Collection[str]) -> Draft:
    """A draft that waits for others as well; without any, for the keys."""
    if draft.after and not earlier:
        return draft
    return replace(draft, after=tuple(sorted({*draft.after, *earlier, *(() if draft.after else (KEYS_FIRST,))})))


def _suppression(parameters: dict[str, Any], verifications: Sequence[str]) -> Draft:
    return Draft(
        id=SUPPRESSION,
        copy=None,
        action=Action.SUPPRESS,
        executor="suppression",
        parameters=parameters,
        hazards=("D12",),
        irreversible=False,
        verification="every key of the persons is on the suppression list, as a keyed reference",
        reason=(
            "backfills, RESTORE and replays must not bring the persons back: loaders check this list, and `recheck` "
            "searches again"
        ),
        after=tuple(verifications),
    )


def _keys(key_sets: Sequence[str], before_the_last: Sequence[str]) -> tuple[Draft, Draft]:
    stage = Draft(
        id=KEYS_FIRST,
        copy=None,
        action=Action.STAGE_KEYS,
        executor="keys",
        parameters={"key_sets": sorted(key_sets)},
        hazards=("D5", "E1"),
        irreversible=False,
        verification="every key set can be decrypted, and is not empty",
        reason="planning resolved the keys from the source; this step decrypts them from the sealed manifest",
    )
    drop = Draft(
        id=KEYS_LAST,
        copy=None,
        action=Action.DROP_KEYS,
        executor="keys",
        parameters={},
        hazards=("D5", "E1"),
        irreversible=False,
        verification="the session has no key view any more",
        reason="the key views must not exist after the run",
        after=tuple(sorted(before_the_last)),
    )
    return stage, drop


Pairs = Iterable[tuple[str, str]]


def upstream_first(items: Sequence[CopyDraft]) -> Pairs:
    """Rows leave upstream before downstream, so that no job refills what was erased."""
    rows = [i for i in items if (i.state or i.topic or i.lakefs) and i.copy.kind not in _HANGING]
    by_dataset = {str(i.copy.dataset): i for i in rows}
    for item in items:
        upstream = by_dataset.get(item.upstream or "")
        if upstream is None or upstream is item or _share(item, upstream):
            continue
        for later in _rows(item):
            for earlier in _rows(upstream):
                yield later, earlier


def sharers_forget_first(items: Sequence[CopyDraft]) -> Pairs:
    """A file that several tables read is removed, or written again in place, when none of the others reads it (I7)."""
    at = _by_place(items)
    for item in items:
        others = (
            [o for place in item.state.sharing for o in at.get(place.location, ()) if o is not item]
            if item.state
            else []
        )
        for later in _first(item, actions_with(Role.REMOVES_FILES)):
            for other in others:
                for earlier in _first(other, actions_with(Role.FORGETS_VERSIONS)):
                    yield later, earlier


def _share(item: CopyDraft, other: CopyDraft) -> bool:
    return item.state is not None and any(o.location == other.copy.location for o in item.state.sharing)


def rebuild_after_inputs(items: Sequence[CopyDraft]) -> Pairs:
    """A table that is rebuilt reads its inputs: all copies upstream of it are erased in their rows first."""
    rows = {str(i.copy.dataset): _rows(i) for i in items if i.copy.kind not in _HANGING}
    for item in items:
        if item.rebuild_sql is None or item.carriage is None:
            continue
        for hop in item.carriage.hops[:-1]:
            for later in _rows(item):
                for earlier in rows.get(str(hop), ()):
                    yield later, earlier


def clones_before_origin(items: Sequence[CopyDraft]) -> Pairs:
    """A shallow clone reads its origin's files: it is finished before the origin's files are touched (D8)."""
    at = _by_place(items)
    for clone in items:
        if clone.state is None or clone.state.clone_of is None or not clone.drafts:
            continue
        for origin in at.get(clone.state.clone_of, ()):
            for later in _first(origin, actions_with(Role.REWRITES_FILES)):
                yield later, clone.drafts[-1].id


def history_before_expiry(items: Sequence[CopyDraft]) -> Pairs:
    """Branches and tags are rewritten after the table's rows are deleted and before its snapshots expire (I3)."""
    by_id = {item.copy.id: item for item in items}
    for history in items:
        if history.copy.kind is not CopyKind.TABLE_HISTORY or not history.drafts:
            continue
        table = by_id[history.copy.origin or ""]
        for earlier in _rows(table):
            yield history.drafts[0].id, earlier
        for later in _first(table, actions_with(Role.LISTS_FILES_AGAIN)):
            yield later, history.drafts[0].id


def replicas_after_origin(items: Sequence[CopyDraft]) -> Pairs:
    """A replica waits for the rewritten objects; old versions go when the new ones are in place."""
    by_id = {item.copy.id: item for item in items}
    for item in items:
        if item.copy.kind not in (CopyKind.REPLICA, CopyKind.OBJECT_VERSION) or not item.drafts:
            continue
        origin = by_id.get(item.copy.origin or "")
        for earlier in _first(origin, {Action.S3_REWRITE_ARCHIVE}) if origin else ():
            yield item.drafts[0].id, earlier


def bytes_after_everything_of_the_copy(items: Sequence[CopyDraft]) -> Pairs:
    """A history's bytes leave with its table's expiry, so it is verified after that."""
    by_id = {item.copy.id: item for item in items}
    for history in items:
        if history.copy.kind is CopyKind.TABLE_HISTORY and history.drafts:
            table = by_id[history.copy.origin or ""]
            if len(table.drafts) > 1:
                yield history.drafts[-1].id, table.drafts[-2].id


def snapshots_of_hdfs_last(items: Sequence[CopyDraft]) -> Pairs:
    """A snapshot is all that is left where a rewrite goes wrong: it goes when all else in HDFS was verified."""
    mine = [item for item in items if item.hdfs is not None and item.drafts]
    for item in mine:
        if item.hdfs and item.hdfs.kind is HdfsKind.SNAPSHOT:
            for other in mine:
                if other.hdfs and other.hdfs.kind is not HdfsKind.SNAPSHOT:
                    yield item.drafts[0].id, other.drafts[-1].id


RULES = (
    upstream_first,
    rebuild_after_inputs,
    clones_before_origin,
    sharers_forget_first,
    history_before_expiry,
    replicas_after_origin,
    bytes_after_everything_of_the_copy,
    unreadable_after_keys,
    backups_after_what_is_in_them,
    snapshots_of_hdfs_last,
)


def _by_place(items: Sequence[CopyDraft]) -> Mapping[str | None, list[CopyDraft]]:
    at: dict[str | None, list[CopyDraft]] = defaultdict(list)
    for item in items:
        at[item.copy.location].append(item)
    return at


def _rows(item: CopyDraft) -> tuple[str, ...]:
    """The step that takes the persons' rows out of a table, a topic or a repository. Archives wait for nothing."""
    return _first(
        item,
        actions_with(Role.ON_ROWS)
        | _OTHER_ROWS
        | ({Action.S3_REWRITE_ARCHIVE} if item.copy.in_objects else frozenset()),
    )


def _first(item: CopyDraft, actions: Collection[Action]) -> tuple[str, ...]:
    for draft in item.drafts:
        if draft.action in actions:
            return (draft.id,)
    return ()


def _sorted(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Topological, and otherwise in the order the drafts were written."""
    by_id = {draft.id: draft for draft in drafts}
    try:
        return tuple(by_id[name] for name in in_order({draft.id: draft.after for draft in drafts}))
    except Circle as circle:
        if any(by_id[name].action is Action.OWNER_TASK for name in circle.members):
            raise PlanError(
                "a task waits for a step that waits for it: " + " → ".join(circle.members),
                where="the waivers file",
                todo="correct the `before` or the `after` of the task",
            ) from None
        raise PlanError(
            "the derivations form a cycle: " + " → ".join(circle.members),
            todo="break the cycle in the estate's jobs, or declare one of them as a separate source",
        ) from None
