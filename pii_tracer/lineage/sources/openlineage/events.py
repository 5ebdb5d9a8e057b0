"""OpenLineage events (NDJSON, JSON documents, plain or gzip) to facts: https://openlineage.io/docs/spec/object-model.

RunEvent, JobEvent and DatasetEvent are read. Events of one run are united whatever their order, and runs that say the
same are one `Run`. A line that cannot be read is a gap; what has the wrong type within an event is a gap of its run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pii_tracer.lineage.dataset_names import Identities, is_place
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.naming_schemes import sql_name
from pii_tracer.lineage.sources.dataset_descriptions import Change, Described, Notes, Parent, Tag
from pii_tracer.lineage.sources.evidence_merging import Proof, iso, micros
from pii_tracer.lineage.sources.log_lines import Gaps, files_of, objects_of
from pii_tracer.lineage.sources.openlineage.event_parsing import (  # fmt: skip
    Dataset,
    Draft,
    Field,
    Id,
    Part,
    Wrong,
    a_list,
    a_map,
    a_text,
    code_of,
    columns_told,
    dataset_of,
    engine_of,
    facets_of,
    is_checked,
    job_name,
    lineage_read,
    lineage_told,
    not_an_event,
    schema_of,
    unread_of,
)
from pii_tracer.lineage.sources.openlineage.idle_jobs import note_idle, note_kept
from pii_tracer.lineage.sources.openlineage.one_spelling import OneSpelling
from pii_tracer.lineage.sources.openlineage.run_merging import Ended, Run, RunBook, Shape
from pii_tracer.lineage.sources.openlineage.sql_dialects import texts_of
from pii_tracer.model.datasets import Column, ColumnId, DatasetId

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
_EVERY = 20_000
"""Events between two words of progress."""


@dataclass
class Events:
    """Everything read from events.

    schemas: versions of columns, with first and last time of each (microseconds). by_file: how many events each file
    held, in order. several_places: tables with more than one place by symlinks. doubtful: pairs that could be one.
    """

    runs: list[Run] = field(default_factory=list)
    schemas: dict[DatasetId, dict[tuple[Column, ...], tuple[int, int]]] = field(default_factory=dict)
    symlinks: dict[str, set[DatasetId]] = field(default_factory=dict)
    several_places: dict[DatasetId, frozenset[DatasetId]] = field(default_factory=dict)
    doubtful: set[tuple[DatasetId, DatasetId]] = field(default_factory=set)
    notes: Notes = field(default_factory=Notes)
    gaps: list[LineageGap] = field(default_factory=list)
    by_file: list[int] = field(default_factory=list)
    read: int = 0


def event_files(place: Path) -> list[Path]:
    """The event files of a file or folder, sorted."""
    return [f for f in files_of(place) if not place.is_dir() or f.name.lower().endswith(_SUFFIXES)]


def read_events(
    places: Iterable[tuple[Path, str]], identities: Identities, say: Callable[[str], None] = lambda text: None
) -> Events:
    """Read event files, each with the name it has in evidence."""
    with RunBook() as book:
        reader = _Reader(book)
        events = Events()
        for place, shown in places:
            gaps, before = Gaps(shown), events.read
            for number, event in objects_of(place, gaps):
                reason = reader.take(event)
                if reason:
                    gaps.add(number, reason, "correct the sender of this event, or remove the event")
                    continue
                events.read += 1
                if events.read % _EVERY == 0:
                    say(f"{events.read} events")
            events.gaps += gaps.all()
            events.by_file.append(events.read - before)
        _Finish(reader, identities, events).run()
    return events


class _Reader:
    """Takes events one by one. Facts about datasets are kept with the first and last time they were told."""

    def __init__(self, book: RunBook) -> None:
        self.book = book
        self.schemas: dict[Id, dict[tuple[tuple[str, str], ...], tuple[int, int]]] = {}
        self.symlinks: dict[tuple[Id, str], set[Id]] = {}
        self.tags: set[tuple[Id, str, str, str, str]] = set()
        self.changes: dict[tuple[Id, str, Id | None], int] = {}
        self.described: dict[tuple[Id, str], tuple[int, tuple[tuple[str, str], ...]]] = {}
        self.parents: set[tuple[str, str]] = set()

    def take(self, event: Mapping[str, Any]) -> str:
        """Read one event; the reason where it is none."""
        reason = not_an_event(event)
        if reason:
            return reason
        job, run, dataset = event.get("job"), event.get("run"), event.get("dataset")
        if job is None and isinstance(dataset, dict):
            self._dataset_event(event, dataset)
        elif isinstance(job, dict):
            self._job_event(event, job, run)
        return ""

    def _job_event(self, event: Mapping[str, Any], job: Mapping[str, Any], run: Mapping[str, Any] | None) -> None:
        """A RunEvent, or a JobEvent, which has no run."""
        draft = Draft("")
        wrong = draft.of(None)
        draft.job = job_name(job, wrong)
        at = _time(event, wrong)
        facets = facets_of(job, wrong)
        code_of(facets, draft)
        of_run = facets_of(run or {}, wrong)
        for told in (facets, of_run):
            engine_of(told, draft)
            self._entries(told, draft)
        note_idle(event, draft)
        self._datasets(event, draft, at)
        if run is None:
            self.book.add(f"description of {draft.job}", draft.part(), None, at)
            return
        unread_of(of_run, draft)
        self._parent(of_run, draft)
        name = a_text(run.get("runId"), "run.runId", wrong) or f"{draft.job} at {iso(at)}"
        state = a_text(event.get("eventType"), "eventType", wrong).upper() or "OTHER"
        self.book.add(name, draft.part(), state, at)

    def _dataset_event(self, event: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        at = _time(event, (draft := Draft("")).of(None))
        found = dataset_of(item, "the dataset", draft)
        if found is None:
            return
        self._facets(found, draft, at)
        self._written(found, draft)
        if not draft.told:
            draft.outputs.discard(found.id)  # it is described, nobody is said to write it
        self.book.add(f"description of {found.id[0]}:{found.id[1]}", draft.part(), None, at)

    def _entries(self, facets: Mapping[str, Any], draft: Draft) -> None:
        """The facet `lineage` of a job or run. Its list has the one or the other name, by version."""
        for key in ("entries", "lineage"):
            for entry in a_list(facets.get("lineage", {}).get(key), f"lineage.{key}", draft.of(None)):
                if entry.get("type") == "JOB":  # it reads, and nobody says what it writes
                    lineage_read(entry, draft)
                elif found := dataset_of(entry, "a target of `lineage`", draft):
                    lineage_told(found.id, entry, draft)

    def _datasets(self, event: Mapping[str, Any], draft: Draft, at: int) -> None:
        for item in a_list(event.get("inputs"), "inputs", draft.of(None)):
            found = dataset_of(item, "an input", draft)
            if found is not None:
                draft.inputs.add(found.id)
                self._facets(found, draft, at)
                self._made_before(found, at)
                if is_checked(item, event):
                    draft.checked.add(found.id)
        for item in a_list(event.get("outputs"), "outputs", draft.of(None)):
            found = dataset_of(item, "an output", draft)
            if found is not None:
                self._facets(found, draft, at)
                self._written(found, draft)

    def _made_before(self, dataset: Dataset, at: int) -> None:
        """What an input says of how it was made, as that of a view: it is not the job's doing."""
        if not dataset.facets.keys().isdisjoint(("columnLineage", "lineage")):
            draft = Draft("")
            self._written(dataset, draft)
            self.book.add(f"description of {dataset.id[0]}:{dataset.id[1]}", draft.part(), None, at)

    def _written(self, dataset: Dataset, draft: Draft) -> None:
        draft.outputs.add(dataset.id)
        note_kept(dataset, draft)
        columns_told(dataset, draft)
        if "lineage" in dataset.facets:
            lineage_told(dataset.id, dataset.facets["lineage"], draft)

    def _parent(self, facets: Mapping[str, Any], draft: Draft) -> None:
        wrong = draft.of(None)
        parent = job_name(a_map(facets.get("parent", {}).get("job"), "parent.job", wrong), wrong)
        if parent and draft.job:
            self.parents.add((draft.job, parent))

    def _facets(self, dataset: Dataset, draft: Draft, at: int) -> None:
        """What is said about a dataset, whoever reads or writes it."""
        facets, wrong = dataset.facets, draft.of(dataset.id)
        columns = schema_of(facets, wrong)
        if columns:
            versions = self.schemas.setdefault(dataset.id, {})
            first, last = versions.get(columns, (at, at))
            versions[columns] = min(first, at), max(last, at)
        for link in a_list(facets.get("symlinks", {}).get("identifiers"), "symlinks.identifiers", wrong):
            name = a_text(link.get("name"), "symlinks.name", wrong)
            if name:
                other = a_text(link.get("namespace"), "symlinks.namespace", wrong), name
                kind = a_text(link.get("type"), "symlinks.type", wrong).upper()
                self.symlinks.setdefault((other, kind), set()).add(dataset.id)
        for tag in a_list(facets.get("tags", {}).get("tags"), "tags", wrong):
            key, value, source, column = (
                a_text(tag.get(k), f"tags.{k}", wrong) for k in ("key", "value", "source", "field")
            )
            if key:
                self.tags.add((dataset.id, column, key, value, source))
        self._lifecycle(dataset, wrong, at)
        for name in ("dataSource", "catalog", "storage", "version"):
            self._describe(dataset, name, at)

    def _lifecycle(self, dataset: Dataset, wrong: Wrong, at: int) -> None:
        facet = dataset.facets.get("lifecycleStateChange", {})
        change = a_text(facet.get("lifecycleStateChange"), "lifecycleStateChange", wrong).upper()
        if not change:
            return
        before = a_map(facet.get("previousIdentifier"), "previousIdentifier", wrong)
        name = a_text(before.get("name"), "previousIdentifier.name", wrong)
        place = a_text(before.get("namespace"), "previousIdentifier.namespace", wrong) or dataset.id[0]
        previous: Id | None = (place, name) if name else None
        if change == "RENAME" and previous is None:
            wrong("it was renamed, but the event does not show the old name")
        previous = previous if previous != dataset.id else None
        key = dataset.id, "RENAME" if previous is not None else change, previous
        self.changes[key] = max(self.changes.get(key, 0), at)

    def _describe(self, dataset: Dataset, name: str, at: int) -> None:
        facet = dataset.facets.get(name)
        if facet is not None:
            content = tuple(sorted((k, v) for k, v in facet.items() if isinstance(v, str) and not k.startswith("_")))
            self.described[dataset.id, name] = max(self.described.get((dataset.id, name), (0, ())), (at, content))


def _time(event: Mapping[str, Any], wrong: Wrong) -> int:
    at = micros(a_text(event.get("eventTime"), "eventTime", wrong))
    if at is None:
        wrong("`eventTime` is not a time")
    return at or 0


class _Finish:
    """From what was read to facts about datasets in their one spelling."""

    def __init__(self, reader: _Reader, identities: Identities, events: Events) -> None:
        self.reader, self.identities, self.events = reader, identities, events
        self._known: dict[Id, DatasetId] = {}
        self._columns: dict[Field, ColumnId] = {}
        self._spelling = OneSpelling(identities, self._named())
        self._places = self._located()
        pairs = ((self._places.get(a, a), self._places.get(b, b)) for a, b in self._spelling.doubtful)
        events.doubtful = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}

    def _named(self) -> set[Id]:
        """Every name that an event tells a dataset by."""
        reader, parts = self.reader, self.reader.book.parts
        found = {id_ for part in parts for id_ in (*part.inputs, *part.outputs)}
        found |= {(e[0][0], e[0][1]) for part in parts for e in part.edges}
        found |= {(m[0][0], m[0][1]) for part in parts for m in part.members}
        return found | set(reader.schemas) | {link for link, _ in reader.symlinks}

    def run(self) -> None:
        reader, events = self.reader, self.events
        for id_, versions in reader.schemas.items():
            mine = events.schemas.setdefault(self.dataset(id_), {})
            for columns, (first, last) in versions.items():
                made = tuple(Column(name=name, type=kind) for name, kind in columns)
                earlier, later = mine.get(made, (first, last))
                mine[made] = min(first, earlier), max(last, later)
        for (other, kind), datasets in reader.symlinks.items():
            if kind != "LOCATION":
                events.symlinks.setdefault(sql_name(*other), set()).update(map(self.dataset, datasets))
        shapes = reader.book.shapes()
        events.runs = sorted((self._run(s) for s in shapes), key=lambda r: (r.proof.job, r.proof.first, r.proof.last))
        events.notes = self._notes()

    def dataset(self, id_: Id) -> DatasetId:
        """The dataset of a name; one that a symlink says is the name of a place is that place."""
        found = self._known.get(id_)
        if found is None:
            normal = self._spelling.of(id_)
            found = self._known[id_] = self._places.get(normal, normal)
        return found

    def column(self, field_: Field) -> ColumnId:
        found = self._columns.get(field_)
        if found is None:
            dataset = self.dataset((field_[0], field_[1]))
            found = self._columns[field_] = ColumnId(dataset=dataset, column=field_[2])
        return found

    def _located(self) -> dict[DatasetId, DatasetId]:
        """Names of tables that symlinks lead to one place of files, whichever of the two an event calls the dataset.

        https://openlineage.io/docs/spec/facets/dataset-facets/symlinks
        """
        places: dict[DatasetId, set[DatasetId]] = {}
        for (other, _), datasets in self.reader.symlinks.items():
            link = self._spelling.of(other)
            for id_ in datasets:
                dataset = self._spelling.of(id_)
                name, place = (link, dataset) if is_place(dataset) else (dataset, link)
                if is_place(place) and not is_place(name):
                    places.setdefault(name, set()).add(place)
        self.events.several_places = {name: frozenset(found) for name, found in places.items() if len(found) > 1}
        return {name: min(found) for name, found in places.items() if len(found) == 1}

    def _run(self, shape: Shape) -> Run:
        parts = [self.reader.book.parts[n] for n in shape.parts]
        job = max(p.job for p in parts)
        named = "" if shape.ended is Ended.DECLARED else "run "
        first, last = ((at, named + run) for at, run in (shape.first, shape.last))
        ids = partial(_together, parts, self.dataset)
        told = {target for p in parts for _, target, _, _ in p.edges}
        return Run(
            proof=Proof("openlineage", job, first, last, shape.runs),
            ended=shape.ended,
            parts=shape.parts,
            inputs=ids("inputs"),
            outputs=ids("outputs"),
            told=ids("told"),
            edges=tuple(
                (self.column(s), self.column(t), k, m) for s, t, k, m in sorted(set().union(*(p.edges for p in parts)))
            ),
            members=tuple(
                (self.column(s), self.dataset(t), k) for s, t, k in sorted(set().union(*(p.members for p in parts)))
            ),
            sql=texts_of(parts),
            checked=ids("checked"),
            kept=ids("kept") - {self.dataset(id_) for p in parts for id_ in p.outputs - p.kept},
            grown=ids("grown"),
            placed=ids("placed"),
            made=frozenset(self.column(c) for c in set().union(*(p.made for p in parts)) - told),
            unread=tuple(sorted(set().union(*(p.unread for p in parts)))),
            code=tuple(sorted(set().union(*(p.code for p in parts)))),
            wrong=tuple((self.dataset(d) if d else None, r) for p in parts for d, r in p.wrong),
        )

    def _notes(self) -> Notes:
        reader = self.reader
        tags = {
            Tag(dataset=self.dataset(d), field=f or None, key=k, value=v, source=s or None)
            for d, f, k, v, s in reader.tags
        }
        changes = {
            Change(dataset=self.dataset(d), change=c, previous=self.dataset(p) if p else None, at=iso(at))
            for (d, c, p), at in reader.changes.items()
        }
        described = {
            Described(dataset=self.dataset(d), facet=f, content=content, at=iso(at))
            for (d, f), (at, content) in reader.described.items()
        }
        parents = {Parent(job=j, parent=p) for j, p in reader.parents}
        return Notes(
            tags=tuple(sorted(tags, key=repr)),
            changes=tuple(sorted(changes, key=repr)),
            described=tuple(sorted(described, key=repr)),
            parents=tuple(sorted(parents, key=repr)),
        )


def _together(parts: list[Part], dataset: Callable[[Id], DatasetId], which: str) -> frozenset[DatasetId]:
    return frozenset(dataset(id_) for part in parts for id_ in getattr(part, which))
