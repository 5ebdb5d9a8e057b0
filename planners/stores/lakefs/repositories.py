"""lakeFS repositories: who is in them, and how the person leaves every branch, and then the storage below.

On each branch whose head holds the person the objects are written again without them and committed. The old objects
stay for as long as an active commit names them (`object_retention`), so the rules are lowered as far as the deadline
asks, the operator's garbage collection is waited for, and the rules are put back. What cannot be done so is a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.lakefs.repository_state import LakefsRules, LakefsState
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    Match,
    Strategy,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import (
    Copy,
    Examined,
    Found,
    Gap,
)
from planners.copies.classification import Recognised, match_of
from planners.copies.scan_evidence import LakefsEvidence
from planners.copies.table_match import pii_columns
from planners.formats.registry import format_planners
from planners.gaps.keys_of_several_columns import not_compared_place
from planners.locate.columns_without_identifiers import other_key_columns
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey, World
from planners.schedule.step_dates import Retention
from planners.step_drafts import CopyDraft, slug, whole_list
from planners.stores.lakefs.object_retention import (
    Commit,
    LettingGo,
    Repository,
    Rules,
    active,
    change,
)

FOR_EVER = 36_500
"""Days that stand for a repository without rules, in which nothing committed is ever collected."""

GRACE = timedelta(hours=24)
"""The collector takes no object that is younger (`grace_period` of lakeFS's API, a day unless set otherwise)."""

MARGIN = timedelta(days=1)


def lakefs_copies(found: Survey, world: World, as_of: datetime, due: datetime, retention: Retention) -> Recognised:
    """Sort the inventory's repositories into copies, gaps and examined ones, as `recognise` does with tables."""
    items: list[CopyDraft] = []
    gaps: list[Gap] = []
    examined: list[Examined] = []
    origins: list[CopyDraft] = []
    for state in world.inventory.lakefs:
        seen = world.lakefs.get((found.subject.name, state.location))
        if seen is None:
            gaps.append(_gap(state, GapKind.NOT_SCANNED, "the repository was not read", "no evidence"))
            continue
        case = _Case.of(found, world, as_of, due, retention, state, seen)
        gaps += case.unknown()
        if not (seen.persons or seen.strays or seen.unread or seen.named):
            reason = (
                f"the person was not found in {counted(seen.objects, 'object')} of its commits, each decoded completely"
            )
            carries = case.carriage.carries if case.carriage else Carries.NONE
            examined.append(Examined(dataset=state.dataset, table=state.dataset.name, carries=carries, reason=reason))
            origins += [case.copy()[0]] if case.match is not None else []
            continue
        item, against = case.copy()
        items.append(item)
        gaps += against
    return Recognised(tuple(items), tuple(gaps), tuple(examined), tuple(origins))


@dataclass(frozen=True)
class _Case:
    """One repository that holds something of the person, or could."""

    found: Survey
    as_of: datetime
    due: datetime
    retention: Retention
    state: LakefsState
    seen: LakefsEvidence
    origin: TableState | None
    carriage: Carriage | None
    match: Match | None

    @classmethod
    def of(
        cls,
        found: Survey,
        world: World,
        as_of: datetime,
        due: datetime,
        retention: Retention,
        state: LakefsState,
        seen: LakefsEvidence,
    ) -> _Case:
        match, origin = lakefs_match(found, state, world.inventory.tables)
        carriage = found.carriages.get(origin.dataset) if origin else None
        return cls(found, as_of, due, retention, state, seen, origin, carriage, match)

    def unknown(self) -> list[Gap]:
        """What could not be told about the repository as a whole."""
        state, gaps = self.state, []
        if self.origin is None:
            reason = f"the table {state.declared.of}, whose rows it is declared to carry, was not found"
            gaps.append(_gap(state, GapKind.UNKNOWN_TABLE, reason, "the estate file, `lakefs`"))
        if state.dangling is not None and (state.stray is None or self.seen.strays):
            reason = (
                f"commits that no branch leads to cannot be listed ({state.dangling}), so nobody knows which objects "
                "they reference. Set garbage collection rules for the repository, and let this run prepare a "
                "collection and read its list"
            )
            gaps.append(_gap(state, GapKind.LAKEFS_DANGLING, reason, state.storage))
        if state.stray is None:
            reason = (
                "the storage below the repository cannot be listed from here, so no run can verify that an object is "
                "removed: set `local_root`, or the estate's `s3`. A run under a waiver ends unverified"
            )
            gaps.append(_gap(state, GapKind.LAKEFS_STORAGE, reason, state.storage))
        if self.seen.messages:
            reason = (
                f"{counted(self.seen.messages, 'commit has', 'commits have')} a value of the person in their message "
                "or metadata, and lakeFS cannot change commits. Create a new repository without these commits"
            )
            gaps.append(_gap(state, GapKind.LAKEFS_MESSAGES, reason, state.location))
        if not self._compared():
            gaps += not_compared_place(self.found, "the repository", state.location, state.dataset)
        return gaps

    def _compared(self) -> bool:
        """Whether each object is declared to hold rows of a table of which lineage knows the whole key."""
        paths = (path for tree in self.state.trees.values() for path in tree)
        staged = (path for branch in self.state.branches for path in branch.staged)
        terms = self.match.terms if self.match else ()
        return any(term.beside for term in terms) and all(map(self.state.declares, (*paths, *staged)))

    def copy(self) -> tuple[CopyDraft, list[Gap]]:
        going = self._letting_go()
        # where names tell the person, the other gaps would repeat them
        against = [self._named()] if self.seen.named else [*self._blocking(going), *self._shared()]
        blocked = any(gap.kind in _BLOCKING for gap in against)
        strategy = Strategy.BLOCKED if blocked else Strategy.REWRITE_BRANCHES
        carriage, state, seen = self.carriage, self.state, self.seen
        columns = self.origin.columns if self.origin else ()
        hops = carriage.hops if carriage else ()
        copy = Copy(
            id="c-lakefs-" + slug(f"{state.server}-{state.dataset.name}"),
            kind=CopyKind.DERIVED,
            dataset=state.dataset,
            table=None,
            location=state.location,
            format=state.declared.format,
            carries=carriage.carries if carriage else Carries.UNKNOWN,
            strategy=strategy,
            columns=pii_columns(carriage) if carriage else (),
            lineage=(*(hop.name for hop in hops), state.location),
            reason=self._reason(going),
            match=self.match,
            other_keys=other_key_columns(carriage, columns) if carriage else (),
            found=Found(
                files_scanned=seen.objects,
                files_with_person=len(seen.persons) + len(seen.strays),
                rows=None,
                bytes=seen.bytes,
                unread=seen.unread,
            ),
            facts={"server": state.server, "repository": state.declared.name, "branches": sorted(going.rewrites)},
        )
        upstream = str(self.origin.dataset) if self.origin else None
        lakefs = None if blocked else state
        item = CopyDraft(copy=copy, lakefs=lakefs, letting_go=going, carriage=carriage, upstream=upstream)
        return item, against if blocked else [*against, *self._tags(going)]

    def _letting_go(self) -> LettingGo:
        state, persons = self.state, self.seen.persons
        rules, repository = rules_in_force(state), repository_of(state)
        holders = state.holding(persons)
        days = timedelta(days=state.declared.collect_days)
        target = self.as_of if self.retention is Retention.IMMEDIATE else self.due - days - MARGIN
        planned = change(repository, rules, holders, self.as_of, max(target, self.as_of))
        young = max((o.modified for o in state.objects if o.address in persons), default=self.as_of)
        shown: dict[str, tuple[str, str] | None] = {o.address: (o.path, o.ref) for o in state.objects}
        heads = {b.name: state.tree_of(b.head) for b in state.branches}
        collectable = max(planned.collectable, young + GRACE)
        # the lowered rules go on ending commits until the collector has run
        end = collectable + days
        kept, as_before = active(repository, planned.rules, end), active(repository, rules, end)
        return LettingGo(
            seen=self.as_of.replace(microsecond=0),
            before=_rules(state.rules),
            change=planned,
            holders=holders,
            rewrites={b: {p: a for p, a in heads[b].items() if a in persons} for b in planned.delete_on},
            addresses={a: shown.get(a) for a in sorted(persons | self.seen.strays)},
            collectable=collectable,
            expires=as_before - kept,
            lost=frozenset(_named_in(state, as_before) - _named_in(state, kept) - persons),
        )

    def _reason(self, going: LettingGo) -> str:
        changed = going.change
        heads = f"at the head of {', '.join(changed.delete_on)}" if changed.delete_on else "at no head"
        told = (
            f"{counted(len(going.addresses), 'object contains', 'objects contain')} the person, {heads}, in "
            f"{counted(len(going.holders), 'commit')}"
        )
        if self.seen.named:
            told = (
                f"{counted(len(going.addresses), 'object contains', 'objects contain')} the person, and names contain "
                "the person, too"
            )
        return f"{told}; the collector may remove the last of them on {going.collectable:%Y-%m-%d %H:%M} UTC"

    # --- what stands against it ---

    def _named(self) -> Gap:
        reason = (
            f"the person's values are in {counted(self.seen.named, 'name')} or metadata of objects, branches or tags, "
            "and a plan would print them: rename these objects, branches or tags, then plan again (hazard F2)"
        )
        return _gap(self.state, GapKind.OBJECT_NAMES, reason, self.state.location)

    def _blocking(self, going: LettingGo) -> list[Gap]:
        state, seen, gaps = self.state, self.seen, []
        if self.match is None:
            gaps.append(self._no_way("no column of its table contains an identifier of the person", state.declared.of))
        if seen.unread:
            gaps.append(self._no_way("not every object could be decoded", "; ".join(seen.unread[:3]), seen.unread))
        logs = _logs(state)
        if logs:
            reason = (
                "the declared prefixes contain tables whose logs list their files: a rewrite of these files would "
                "break the tables"
            )
            gaps.append(
                self._no_way(
                    reason, f"{counted(len(logs), 'path')} of {' and '.join(sorted(set(logs.values())))} logs", logs
                )
            )
        foreign = sorted(a for a in seen.persons if not a.startswith(state.storage + "/"))
        if foreign:
            reason = (
                "the person is in objects that were imported: these objects are outside the repository's storage, "
                "and lakeFS never removes them. Erase the person in the original objects, then import them again"
            )
            gaps.append(_gap(state, GapKind.LAKEFS_IMPORTED, reason, counted(len(foreign), "object"), whole=foreign))
        for branch in state.branches:
            staged = {a for a in branch.staged.values() if a is not None}
            if (branch.name in going.rewrites and branch.staged) or staged & seen.persons:
                reason = (
                    f"the branch {branch.name} has uncommitted changes: they would be committed with the erasure, or "
                    "may contain the person. Commit or reset the changes, then plan again"
                )
                number, listed = counted(len(branch.staged), "path"), branch.staged.items()
                gaps.append(_gap(state, GapKind.LAKEFS_STAGED, reason, number, branch.name, listed))
            if branch.name in going.rewrites and branch.protected:
                reason = (
                    f"the branch {branch.name} is protected, and its head contains the person: remove the protection "
                    "for the erasure, or merge the rewritten objects yourself"
                )
                gaps.append(_gap(state, GapKind.LAKEFS_PROTECTED, reason, "branch protection rules", branch.name))
            beyond = [path for path in going.rewrites.get(branch.name, ()) if not state.declares(path)]
            if beyond:
                reason = (
                    f"the person is on the branch {branch.name} in objects that no declared prefix covers: declare a "
                    "prefix for these objects, or erase them by hand"
                )
                number = counted(len(beyond), "path")
                gaps.append(_gap(state, GapKind.UNEXPECTED_COPY, reason, number, branch.name, beyond))
        return gaps

    def _no_way(self, reason: str, evidence: str, whole: Iterable[object] = ()) -> Gap:
        return _gap(self.state, GapKind.CANNOT_BE_PROVED, reason, evidence, whole=whole)

    def _shared(self) -> list[Gap]:
        gaps = []
        for column, trace in self.carriage.terms if self.carriage else ():
            derived = self.found.derived[trace.origin, trace.expression]
            if derived.shared:
                reason = (
                    f"{counted(derived.shared, 'value')} of {trace.origin} cannot identify the person, because other "
                    "people have the same value: rows that have no other key would remain"
                )
                gaps.append(_gap(self.state, GapKind.SHARED_IDENTIFIER, reason, f"column {column}", column))
        return gaps

    def _tags(self, going: LettingGo) -> list[Gap]:
        """Tags keep nothing: what is collected is lost to them, too. Whoever set one must agree."""
        gaps = []
        for tag, commit in sorted(self.state.tags.items()):
            if commit in going.holders or going.lost & set(self.state.tree_of(commit).values()):
                reason = (
                    f"the tag {tag} references a commit that loses objects: lakeFS's collector retains nothing for "
                    "tags, and reads through the tag will fail with status 410. Move the tag, or waive this gap"
                )
                gaps.append(_gap(self.state, GapKind.LAKEFS_TAG, reason, f"commit {commit[:12]}", tag, [commit]))
        return gaps


_BLOCKING = frozenset(
    {
        GapKind.OBJECT_NAMES,
        GapKind.CANNOT_BE_PROVED,
        GapKind.LAKEFS_IMPORTED,
        GapKind.LAKEFS_STAGED,
        GapKind.LAKEFS_PROTECTED,
        GapKind.UNEXPECTED_COPY,
    }
)


def lakefs_match(
    found: Survey, state: LakefsState, tables: Iterable[TableState]
) -> tuple[Match | None, TableState | None]:
    """How the persons' rows are found in a repository's objects, and the table that they are rows of."""
    by_location = {table.location: table for table in tables}
    origin = next((t for t in by_location.values() if t.table == state.declared.of), None)
    return (match_of(found, origin, by_location) if origin else None), origin


def _logs(state: LakefsState) -> Mapping[str, str]:
    """Declared paths of tables' own logs, in any commit, with what their format is called."""
    named = {p for tree in state.trees.values() for p in tree if state.declares(p)}
    return {p: format_of(name).title for p in named for name, planner in format_planners() if planner.is_log(p)}


def repository_of(state: LakefsState) -> Repository:
    """The commits and heads of a repository."""
    commits = {c.id: Commit(c.id, c.created, c.parent) for c in state.commits}
    return Repository(commits, {b.name: b.head for b in state.branches})


def rules_in_force(state: LakefsState) -> Rules:
    """The rules of a repository; without any, nothing committed ever ends."""
    return _rules(state.rules) or Rules(FOR_EVER, {})


def _rules(rules: LakefsRules | None) -> Rules | None:
    return Rules(rules.default_days, rules.branches) if rules else None


def _named_in(state: LakefsState, commits: frozenset[str]) -> set[str]:
    """Addresses that some commits name."""
    return {a for c in state.commits if c.id in commits for a in state.trees[c.tree].values()}


def _gap(
    state: LakefsState, kind: GapKind, reason: str, evidence: str, what: str = "", whole: Iterable[object] = ()
) -> Gap:
    name = slug(f"{state.server}-{state.dataset.name}") + (f"-{slug(what)}" if what else "")
    gap_id, seen = f"gap-{kind}-{name}", whole_list(reason, whole)
    return Gap(id=gap_id, dataset=state.dataset, kind=kind, reason=reason, evidence=evidence, seen=seen)
