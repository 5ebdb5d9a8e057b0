"""Key tables and what they encrypt: destroying a person's key erases the copies in which nothing else is readable.

A key table is a copy like any other, of kind KEY: the person's row leaves it, its history, clones, branches and
archives by the same steps. A dataset whose personal columns are all encrypted has no row to delete; it is unreadable
when the key is gone everywhere and the longest cache is over. Where anything of the person is readable beside the
ciphertext, the copy is treated as any other, and the key goes as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.config.backups import Backup
from pii_tracer.config.keys import Encrypted, KeyTable, KmsWrapping
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.keys.key_facts import KeyFacts, KmsKey
from pii_tracer.lineage.graph.edges import Edge, EdgeType, Subtype
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.datasets import (
    Carries,
    ColumnId,
    CopyKind,
    DatasetId,
    Strategy,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import (
    Copy,
    Examined,
    Gap,
    PlannedColumn,
)
from planners.copies.archives_and_branches import archives
from planners.copies.classification import Recognised
from planners.copies.declared_origins import is_stored_of
from planners.keys.decrypted_copies import with_opened
from planners.keys.key_table_lineage import (
    family_of,
    has_wrapped,
    remembers,
    state_of,
    wrapped_columns,
    wrapped_in,
)
from planners.keys.plaintext_cells import plain_beside, unseen
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import (
    NO_ROWS,
    CopyDraft,
    slug,
)

_RESTORED_FIRST = ("GLACIER", "DEEP_ARCHIVE")

_ABOUT_ROWS = frozenset({GapKind.CANNOT_BE_PROVED, GapKind.LINEAGE})
"""Doubts about deleting rows."""


def declared_edges(
    tables: Sequence[KeyTable],
    states: Sequence[TableState],
    graph: LineageGraph,
    origins: Mapping[str, tuple[DatasetId, Spot]],
) -> list[Edge]:
    """What the estate file says about key tables, as lineage: their person column is the subject's key, and so is what
    encrypted rows refer to where nothing else names the data keys.

    origins: where the key stands, by subject. Where lineage knows how the column is filled, that stands.
    """
    edges = []
    for table in tables:
        dataset, key = origins.get(table.subject, (None, Spot("")))
        places = [(table.table, table.person_column)]
        if table.reference == table.person_column:  # then encrypted rows name the person in plain
            places += [(entry.dataset, entry.key_column) for entry in table.encrypts]
        for name, column in places:
            state = state_of(name, states)
            if dataset is None or state is None or dataset == state.dataset:
                continue
            if not any(e.target.column == column for e in graph.edges_into(state.dataset)):
                target = ColumnId(dataset=state.dataset, column=column)
                source = ColumnId(dataset=dataset, column=key.column)
                subtype = Subtype.TRANSFORMATION if key.access else Subtype.IDENTITY
                edges.append(
                    Edge(source=source, target=target, type=EdgeType.DIRECT, subtype=subtype, expression=key.sql)
                )
    return edges


def with_keys(
    found: Recognised, survey: Survey, world: World, tables: Sequence[KeyTable], backups: Sequence[Backup] = ()
) -> Recognised:
    """Mark the key tables of a subject, and plan what they encrypt. backups: as declared; a key may be in one."""
    for table in tables:
        if table.subject == survey.subject.name:
            found = _Case(found, survey, world, table, tuple(backups)).planned()
    return with_opened(found, world, [table for table in tables if table.subject == survey.subject.name])


@dataclass(frozen=True)
class _Case:
    """One key table among what was recognised."""

    found: Recognised
    survey: Survey
    world: World
    table: KeyTable
    backups: tuple[Backup, ...]

    def planned(self) -> Recognised:
        state = state_of(self.table.table, self.world.inventory.tables)
        if state is None:
            return self._and(
                gaps=[
                    self._gap(
                        GapKind.KEY_MISSING, None, "the key table was not found, and may contain the persons' keys"
                    )
                ]
            )
        columns = {c.name for c in state.columns}
        wrong = {self.table.person_column, self.table.reference, self.table.wrapped_column} - columns
        if wrong:
            return self._and(
                gaps=[self._gap(GapKind.KEY_COLUMNS, state, f"it has no column {', '.join(sorted(wrong))}")]
            )
        key = next((i for i in self.found.items if i.copy.location == state.location and i.copy.origin is None), None)
        if key is None:
            return self._keyless(state)
        items, gaps = list(self.found.items), self._unusable(state)
        opened: list[str] = []
        for entry in self.table.encrypts:
            made, against = self._encrypted(entry, key, items)
            gaps += against
            changed = {i.copy.id: i for i in made}
            items = [changed.pop(i.copy.id, i) for i in items] + list(changed.values())
            opened += [i.copy.id for i in made]
        return self._merged([self._key(i, state, opened) if i.copy.id == key.copy.id else i for i in items], gaps)

    def _unusable(self, state: TableState) -> list[Gap]:
        """What stands against destroying the keys: others have them too, or everybody's are going away."""
        known = self._facts
        gaps = []
        if known.unread:
            gaps.append(self._gap(GapKind.KEY_UNREAD, state, f"nobody knows whose keys it contains: {known.unread}"))
        if known.kms and known.kms.state != "Enabled":
            why = (
                f"the KMS key of the whole table is {known.kms.state}: destroying it would make the cells of all "
                "persons unreadable"
            )
            gaps.append(self._gap(GapKind.KEY_KMS_STATE, state, why))
        if known.shared:
            why = (
                f"{counted(known.shared, 'key of the person is', 'keys of the person are')} also in other people's "
                "rows: the cells of these rows would remain readable"
            )
            gaps.append(self._gap(GapKind.KEY_SHARED, state, why))
        if known.shared_kms:
            why = f"{counted(known.shared_kms, 'KMS key')} not deleted, because other people or an alias use it"
            gaps.append(self._gap(GapKind.KEY_KMS_SHARED, state, why))
        return gaps

    @property
    def _facts(self) -> KeyFacts:
        return self.world.keys.get(self.table.name, KeyFacts())

    def _key(self, item: CopyDraft, state: TableState, opened: Sequence[str]) -> CopyDraft:
        known = self._facts
        facts: dict[str, Any] = {
            "keys": self.table.name,
            "wrapped_in": wrapped_in(self.table, state, self.world),
            "opens": sorted(opened),
            "cache_seconds": self.table.cache_seconds,
            "wrapping": self.table.wrapping.kind,
            "kms": [_told(k) for k in (*([known.kms] if known.kms else []), *known.own)],
        }
        how = self.table.wrapping
        if isinstance(how, KmsWrapping) and known.own:
            facts["own_kms_keys"] = {
                "region": how.region,
                "endpoint_url": how.endpoint_url,
                "kms_keys": [k.key_id for k in known.own],
                "rounds": 2 if any(k.replicas for k in known.own) else 1,
            }
        told = "; KMS: " + "; ".join(facts["kms"]) if facts["kms"] else ""
        column = PlannedColumn(name=self.table.wrapped_column, category="encryption_key")
        update = {
            "kind": CopyKind.KEY,
            "columns": tuple(sorted({*item.copy.columns, column}, key=lambda c: (c.name, c.category))),
            "facts": item.copy.facts | facts,
            "reason": f"contains the wrapped data keys of the persons;  {item.copy.reason}{told}",
        }
        return replace(item, copy=item.copy.model_copy(update=update))

    def _encrypted(
        self, entry: Encrypted, key: CopyDraft, items: Sequence[CopyDraft]
    ) -> tuple[list[CopyDraft], list[Gap]]:
        """The copies that hold cells under the persons' keys, treated or not; all of them are opened by the key."""
        state = state_of(entry.dataset, self.world.inventory.tables)
        if state is None:
            why = f"the dataset {entry.dataset}, which these keys encrypt, was not found"
            return [], [self._gap(GapKind.KEY_ENCRYPTED_MISSING, None, why)]
        wrong = {entry.key_column, *entry.encrypted} - {c.name for c in state.columns}
        if wrong:
            why = f"the encrypted dataset {entry.dataset} has no column {', '.join(sorted(wrong))}"
            # opened by the key all the same, so that a hold on it keeps the key
            return [i for i in items if i.copy.location == state.location], [
                self._gap(GapKind.KEY_ENCRYPTED_COLUMNS, state, why)
            ]
        made: list[CopyDraft] = []
        gaps: list[Gap] = []
        for one in family_of(state, self.world.inventory.tables):
            copies, against = self._one(entry, one, key, items)
            made += copies
            gaps += against
        return made, gaps

    def _one(
        self, entry: Encrypted, state: TableState, key: CopyDraft, items: Sequence[CopyDraft]
    ) -> tuple[list[CopyDraft], list[Gap]]:
        known = [i for i in items if i.copy.location == state.location]
        beside = [i for i in items if is_stored_of(i, state.table, state.location, state.dataset.name)]
        own = next((i for i in known if i.copy.origin is None), None)
        if own is not None and own.copy.match is not None:  # its rows are found and deleted, ciphertext and all
            return [*known, *beside], []
        readable = self._readable(entry, state, own)
        if readable:
            item = own or self._draft(entry, state, key, None)
            copy = item.copy.model_copy(update={"strategy": Strategy.BLOCKED, **NO_ROWS})
            return [replace(item, rebuild_sql=None, recomputable=False, copy=copy)], [
                self._gap(GapKind.KEY_READABLE, state, readable)
            ]
        item = self._draft(entry, state, key, own)
        stored = [self._archived(i, item) for i in archives(self.world, [item])]
        gaps = [
            self._gap(GapKind.KEY_ARCHIVED_CIPHERTEXT, state, f"{i.copy.location} cannot be read before it is restored")
            for i in stored
            if i.copy.strategy is Strategy.BLOCKED
        ]
        gaps += plain_beside(state, self._facts.plain)
        gaps += unseen(state, self.world, [i for i in beside if i.vault is not None])
        # a vault of it is treated as planned, and the key opens it: a hold on it keeps the key
        return [item, *stored, *(i for i in beside if i.vault is not None)], gaps

    def _readable(self, entry: Encrypted, state: TableState, own: CopyDraft | None) -> str | None:
        """What of the person is readable in a dataset that is declared to be encrypted."""
        plain = {c.name for c in own.copy.columns} - entry.encrypted - {entry.key_column} if own else set()
        if plain:
            return f"personal columns according to lineage are not encrypted: {', '.join(sorted(plain))}"
        wrapped = self._wrapped_beside(state)
        if wrapped:
            return f"lineage copies the wrapped keys themselves: {', '.join(wrapped)}"
        seen = self.world.evidence.get(state.location)
        if seen is None or seen.unread:
            return "not every file could be decoded: plain values may be among the ciphertext"
        if seen.found:
            return "it contains the person's values in plain text"
        weak = seen.weak - set(own.copy.other_keys if own else ())
        return f"the person's number may be in plain text in {', '.join(sorted(weak))}" if weak else None

    def _wrapped_beside(self, state: TableState) -> list[str]:
        """Columns beside the cells into which lineage brings wrapped keys: they open the cells whatever is deleted."""
        table = state_of(self.table.table, self.world.inventory.tables)
        columns = wrapped_columns(self.table, table, self.world) if table else frozenset()
        return sorted(name for dataset, name in columns if dataset == state.dataset)

    def _draft(self, entry: Encrypted, state: TableState, key: CopyDraft, own: CopyDraft | None) -> CopyDraft:
        columns = tuple(PlannedColumn(name=name, category="encrypted") for name in sorted(entry.encrypted))
        copy = Copy(
            id=own.copy.id if own else "c-" + slug(title(state)),
            kind=own.copy.kind if own else CopyKind.DERIVED,
            dataset=state.dataset,
            table=state.table,
            location=state.location,
            format=state.format,
            carries=Carries.BRIDGE,
            strategy=Strategy.DESTROY_KEY,
            columns=own.copy.columns if own and own.copy.columns else columns,
            lineage=own.copy.lineage if own else (*key.copy.lineage, title(state)),
            reason=(
                f"all its personal columns are encrypted with keys of {self.table.table}: the ciphertext is not deleted"
            ),
            other_keys=own.copy.other_keys if own else (),
            found=own.copy.found if own else None,
            facts={
                "keys": self.table.name,
                "key_copy": key.copy.id,
                "key_terms": [[t.column, t.key_set] for t in key.copy.match.terms if not t.access]
                if key.copy.match
                else [],
                "encrypted": entry.dataset,
            },
        )
        return CopyDraft(copy=copy, state=state, carriage=own.carriage if own else None)

    def _archived(self, item: CopyDraft, of: CopyDraft) -> CopyDraft:
        """Archives, old versions and replicas of encrypted datasets; what must be restored first is not read."""
        classes = {v.storage_class for v in item.objects.versions} if item.objects else set()
        strategy = Strategy.BLOCKED if classes & set(_RESTORED_FIRST) else Strategy.DESTROY_KEY
        facts = item.copy.facts | of.copy.facts
        return replace(item, copy=item.copy.model_copy(update={"strategy": strategy, "match": None, "facts": facts}))

    def _keyless(self, state: TableState) -> Recognised:
        """The person has no row in the key table: whatever is encrypted cannot be read already."""
        carriage = self.survey.carriages.get(state.dataset)
        if carriage is None or carriage.carries is Carries.NONE:
            why = (
                f"according to lineage, {self.table.person_column} is filled from a column that does not name the "
                "person"
            )
            return self._and(gaps=[self._gap(GapKind.KEY_UNTRACED, state, why)])
        places = (state.table, state.location, state.dataset.name)
        derived = wrapped_in(self.table, state, self.world)
        stored = any(names_place(name, *places) for backup in self.backups for name in backup.of)
        if stored or any(remembers(i, *places) or has_wrapped(i, derived) for i in self.found.items):
            why = (
                "it has no key of the person, but copies of it have one or may have one: the data encrypted with "
                "that key is still readable"
            )
            return self._and(gaps=[self._gap(GapKind.KEY_REMEMBERED, state, why)])
        gaps: list[Gap] = []
        examined = list(self.found.examined)
        gone: set[DatasetId] = set()
        for entry in self.table.encrypts:
            dataset = state_of(entry.dataset, self.world.inventory.tables)
            if dataset is None:
                continue
            own = next((i for i in self.found.items if i.copy.location == dataset.location), None)
            if own is None:
                gaps += plain_beside(dataset, self._facts.plain) + unseen(dataset, self.world, self.found.items)
            if own is None or own.copy.match is not None:
                continue
            readable = self._readable(entry, dataset, own)
            if readable:
                gaps.append(self._gap(GapKind.KEY_READABLE, dataset, readable))
                continue
            gaps += plain_beside(dataset, self._facts.plain) + unseen(dataset, self.world, self.found.items)
            gone.add(dataset.dataset)
            reason = f"encrypted with keys of {title(state)}, which has no key of the person: nobody can read this data"
            examined.append(Examined(dataset=dataset.dataset, table=dataset.table, carries=Carries.NONE, reason=reason))
        items = tuple(i for i in self.found.items if i.copy.dataset not in gone)
        return self._merged(items, gaps, examined, gone)

    def _and(self, gaps: Sequence[Gap]) -> Recognised:
        return replace(self.found, gaps=(*self.found.gaps, *gaps))

    def _merged(
        self,
        items: Sequence[CopyDraft],
        gaps: Sequence[Gap],
        examined: Sequence[Examined] | None = None,
        settled: set[DatasetId] | None = None,
    ) -> Recognised:
        """Doubts about deleting rows are moot where a key is destroyed instead."""
        settled = (settled or set()) | {i.copy.dataset for i in items if i.copy.strategy is Strategy.DESTROY_KEY}
        kept = [g for g in self.found.gaps if not (g.dataset in settled and g.kind in _ABOUT_ROWS)]
        here = {i.copy.dataset for i in items}
        told = self.found.examined if examined is None else examined
        examined = tuple(e for e in told if e.dataset not in here)
        return replace(self.found, items=tuple(items), gaps=(*kept, *gaps), examined=examined)

    def _gap(self, kind: GapKind, state: TableState | None, reason: str) -> Gap:
        name = slug(title(state)) if state else slug(self.table.name)
        return Gap(
            id=f"gap-{kind}-{name}",
            dataset=state.dataset if state else None,
            kind=kind,
            reason=reason,
            evidence=f"the estate file, `keys`, {self.table.name}",
        )


def _told(key: KmsKey) -> str:
    parts = [f"{key.key_id} is {key.state}"]
    if key.deletion_date is not None:
        parts.append(f"until {key.deletion_date:%Y-%m-%d}")
    if key.grants:
        parts.append(counted(key.grants, "grant"))
    parts += [f"replica {_told(replica)}" for replica in key.replicas]
    return ", ".join(parts)
