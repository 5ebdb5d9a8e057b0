"""The verdict on a change: both sides of a repository compared, table by table and statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pii_tracer.lineage.projects.parts import Part, PartKind
from pii_tracer.lineage.projects.project_lineage import SideLineage, Written, line_of_column
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.model_review import FindingKind, ReviewFinding, Severity
from planners.model_review.holdings import Holding
from planners.model_review.subject_selection import personal_names

Holdings = Mapping[DatasetId, Holding]


@dataclass(frozen=True)
class Comparison:
    """Two sides, and what both hold of one kind of person. names: of columns that mean a person, in lower case."""

    base: SideLineage
    head: SideLineage

    @cached_property
    def changed(self) -> frozenset[str]:
        """Parts of the head that are new, or made from something else than before."""
        before = {part.name: part.fingerprint for part in self.base.parts.parts}
        return frozenset(p.name for p in self.head.parts.parts if before.get(p.name) != p.fingerprint)

    def because(self, dataset: DatasetId, own: Sequence[Written]) -> tuple[str, ...]:
        """Changed files further up, where the dataset's own statements are what they were."""
        if any(one.part.name in self.changed for one in own):
            return ()
        return self._changed_above([dataset])

    def because_part(self, part: Part) -> tuple[str, ...]:
        """As `because`, of everything that a part writes."""
        return self._changed_above(self.head.outputs(part.name))

    def _changed_above(self, datasets: Sequence[DatasetId]) -> tuple[str, ...]:
        above = {d for dataset in datasets for d in self.head.graph.upstream(dataset)}
        parts = {(one.part.name, one.part.file) for d in above for one in self.head.written.get(d, ())}
        return tuple(sorted({file for name, file in parts if name in self.changed}))


def table_findings(both: Comparison, base: Holdings, head: Holdings, key: str) -> Iterator[ReviewFinding]:
    """What became of each table that holds persons. key: the subject's, as findings name it."""
    for dataset, now in head.items():
        own = both.head.written.get(dataset, ())
        stored = [one for one in own if not one.is_view]
        if stored:
            before = base.get(dataset) if stored_in(both.base, dataset) else None
            yield from _of_table(_Place(both, dataset, stored, now, key), before, now)
    for dataset, was in base.items():
        writers = [one.part.name for one in both.base.written.get(dataset, ())]
        gone = not both.head.written.get(dataset) and both.head.unclear.keys().isdisjoint(writers)
        if was.personal and stored_in(both.base, dataset) and gone:
            yield _removed(both, dataset, was)


def stored_in(side: SideLineage, dataset: DatasetId) -> bool:
    return any(not one.is_view for one in side.written.get(dataset, ()))


@dataclass(frozen=True)
class _Place:
    """Where findings about one table point to."""

    both: Comparison
    dataset: DatasetId
    written: Sequence[Written]
    holding: Holding
    key: str

    def finding(
        self, kind: FindingKind, severity: Severity, message: str, todo: str, columns: Sequence[str] = ()
    ) -> ReviewFinding:
        named = [(one, column) for column in columns for one in self.written if column in one.made.columns]
        before = {one.made.sql for one in self.both.base.written.get(self.dataset, ())}
        changed = [one for one in self.written if one.part.name in self.both.changed]
        new = [one for one in changed if one.made.sql not in before]
        own = (new or changed or self.written)[0]
        one, line = (named[0][0], line_of_column(*named[0])) if named else (own, own.line)
        return ReviewFinding(
            kind=kind,
            severity=severity,
            file=one.part.file,
            line=line,
            table=self.dataset.name,
            message=message,
            todo=todo,
            columns=tuple(columns),
            path=tuple(d.name for d in self.holding.path),
            because=self.both.because(self.dataset, self.written),
        )

    @property
    def appended(self) -> bool:
        return any(one.appended for one in self.written)


def _of_table(place: _Place, before: Holding | None, now: Holding) -> Iterator[ReviewFinding]:
    known = before.identifiers if before is not None else frozenset()
    if now.keyed:
        mixed = sorted(now.mixed - (before.mixed if before is not None else frozenset()))
        if mixed:
            yield place.finding(
                FindingKind.COPY_WITHOUT_KEY,
                Severity.ERROR,
                f"A row of {place.dataset.name} can name several persons ({listed(mixed)}), and "
                f"{listed(now.keys) or place.key} finds only one of them.",
                "Write the key of each person in addition to their columns, or leave the other person's columns out.",
                mixed,
            )
            return
        added = sorted(now.identifiers - known - set(now.keys))
        if before is not None and before.personal and added:
            yield place.finding(
                FindingKind.IDENTIFIER_ADDED,
                Severity.WARNING,
                f"{place.dataset.name} gets {listed(added)}. Its rows are still found by {listed(now.keys)}.",
                "Keep the column only if somebody needs it there.",
                added,
            )
        return
    hidden = [name for name in sorted(now.hidden) if before is None or before.keyed or name not in before.hidden]
    aggregated = sorted(now.aggregated - (before.aggregated if before is not None else frozenset()))
    if hidden:
        why = "; ".join(f"{name}: {now.hidden[name]}" for name in hidden[:3])
        yield place.finding(
            FindingKind.MASK_NOT_RECOMPUTABLE,
            Severity.ERROR,
            f"It is impossible to compute {listed(hidden)} of {place.dataset.name}"
            f" for a given person ({why}), and no column has"
            f" the key {place.key}.",
            f"Also write {place.key}, or use a hash with a fixed salt, such as sha2(concat('salt', x), 256).",
            hidden,
        )
    if aggregated:
        yield place.finding(
            FindingKind.IDENTIFIERS_IN_AGGREGATE,
            Severity.ERROR if place.appended else Severity.WARNING,
            f"An aggregate keeps {listed(aggregated)} in {place.dataset.name}, where no row belongs to a single person."
            + (" Its job only adds rows, so a rebuild does not remove them." if place.appended else ""),
            "Use a count instead, or group by the key, or rebuild the whole table each time.",
            aggregated,
        )
    if before is not None and before.keyed and now.carries in (Carries.IDENTIFIERS, Carries.UNKNOWN):
        if not hidden:
            yield _key_dropped(place, before, now)
    else:
        yield from _new_copy(place, known, now, bool(hidden or aggregated), before is None or not before.personal)


def _key_dropped(place: _Place, before: Holding, now: Holding) -> ReviewFinding:
    others = sorted(now.identifiers - set(before.keys))
    left = f"It still has {listed(others)}." if others else f"{now.reason[:1].upper()}{now.reason[1:]}."
    return place.finding(
        FindingKind.KEY_DROPPED,
        Severity.ERROR,
        f"{place.dataset.name} loses {listed(before.keys)}, by which a person's rows were found. {left}",
        f"Keep {listed(before.keys)} in every statement that writes the table.",
    )


def _new_copy(place: _Place, known: frozenset[str], now: Holding, said: bool, is_new: bool) -> Iterator[ReviewFinding]:
    plain, hashed = sorted(now.plain - known), sorted(now.hashed - known)
    if plain or hashed:
        computed = not plain and now.carries is Carries.IDENTIFIERS
        found = "A hash of the person's value finds the row." if computed else "No key finds a person's rows."
        yield place.finding(
            FindingKind.COPY_WITHOUT_KEY,
            Severity.WARNING if computed else Severity.ERROR,
            f"{listed(plain or hashed)} goes to {place.dataset.name}, and no column there has the key"
            f" {place.key} in every row. {found}",
            f"Select {place.key} too, or leave the identifier out.",
            plain or hashed,
        )
    elif is_new and not said and now.carries is Carries.UNKNOWN:
        yield place.finding(
            FindingKind.COPY_WITHOUT_KEY,
            Severity.WARNING,
            f"Rows of persons go to {place.dataset.name} without key and identifiers. A plan has to rebuild it.",
            f"Select {place.key} too, or aggregate.",
        )


def _removed(both: Comparison, dataset: DatasetId, was: Holding) -> ReviewFinding:
    one = both.base.written[dataset][0]
    return ReviewFinding(
        kind=FindingKind.MODEL_REMOVED,
        severity=Severity.WARNING,
        file=one.part.file,
        line=one.line,
        table=dataset.name,
        message=(
            f"No statement here writes {dataset.name} any more. The table and its data of persons remain until "
            "somebody drops the table."
        ),
        todo="Drop the table in the warehouse, or keep its lineage for the next erasure.",
        path=tuple(d.name for d in was.path),
    )


def statement_findings(both: Comparison) -> Iterator[ReviewFinding]:
    """Parts that cannot be read or followed, where they could before, or where they changed."""
    for part in both.head.parts.parts:
        now = both.head.unclear.get(part.name, ())
        before = both.base.part(part.name)
        was = {one.reason for one in both.base.unclear.get(part.name, ())} if before is not None else set()
        fresh = sorted((one for one in now if one.reason not in was), key=lambda one: one.assumed)
        changed = part.name in both.changed
        shown = fresh or (list(now) if changed else [])
        if not shown:
            continue
        assumed = all(one.assumed for one in shown)
        judged = not fresh and part.unread is None
        more = f" ({len(shown) - 1} more)" if len(shown) > 1 else ""
        yield ReviewFinding(
            kind=FindingKind.UNREADABLE if part.broken else FindingKind.LINEAGE_LOST,
            severity=Severity.WARNING if judged or assumed else Severity.ERROR,
            file=part.file,
            line=shown[0].line,
            table=part.name,
            message=f"Persons' data cannot be followed in {part.name}: {shown[0].reason}{more}."
            + (" The base has the same problem." if judged else ""),
            todo=_next(part, shown[0].reason),
            because=() if changed else both.because_part(part),
        )
    yield from _above_unclear(both)
    old = {(path, reason) for path, _, reason in both.base.parts.problems}
    for path, line, reason in both.head.parts.problems:
        if (path, reason) not in old:
            yield ReviewFinding(
                kind=FindingKind.UNREADABLE,
                severity=Severity.ERROR,
                file=path,
                line=line,
                table=path,
                message=f"This file cannot be read: {reason}.",
                todo="Correct the file. Its statements about models are not known here.",
            )


def _above_unclear(both: Comparison) -> Iterator[ReviewFinding]:
    """Changed parts that read what nobody can follow: what looks like no person there may be one."""
    unclear = {d for name in both.head.unclear for d in both.head.datasets_of(name)}
    for name in sorted(both.changed - both.head.unclear.keys()):
        part, outputs = both.head.part(name), both.head.outputs(name)
        above = {d for output in outputs for d in both.head.graph.upstream(output)} & unclear
        if part is None or not above:
            continue
        before = {d for output in both.base.outputs(name) for d in both.base.graph.upstream(output)}
        judged = both.base.part(name) is not None and above <= before
        yield ReviewFinding(
            kind=FindingKind.LINEAGE_LOST,
            severity=Severity.WARNING if judged else Severity.ERROR,
            file=part.file,
            line=1,
            table=name,
            message=f"{name} reads {listed(sorted(d.name for d in above))}, whose own lineage is not known."
            + (" The lineage was not known in the base either." if judged else ""),
            todo="Load the lineage of these datasets first, or accept the finding with a comment and a reason.",
        )


def _next(part: Part, reason: str) -> str:
    if part.broken:
        return "Correct the file, and push again."
    if part.unread is not None and "template" in part.unread:
        return "Give the compiled SQL of both sides (`dbt compile`, --manifest and --base-manifest)."
    if part.unread is not None:
        return "Write the model in SQL, or accept the finding with a comment and a reason."
    if "schema" in reason or "column" in reason:
        return "Name the columns, or give their schema: properties files, --lineage, or `lineage.schemas`."
    return "Rewrite the statement, or accept the finding with a comment and a reason."


def seed_findings(both: Comparison, names: frozenset[str]) -> Iterator[ReviewFinding]:
    """CSV files whose headers name persons. names: of the subjects' columns, in lower case."""
    for part in both.head.parts.parts:
        if part.kind is not PartKind.SEED:
            continue
        before = both.base.part(part.name)
        new = [c for c in part.columns if before is None or c not in before.columns]
        telling = {*personal_names(new), *(c for c in new if c.lower() in names)}
        columns = [column for column in new if column in telling]
        if columns:
            yield ReviewFinding(
                kind=FindingKind.PERSONAL_SEED,
                severity=Severity.ERROR,
                file=part.file,
                line=1,
                table=part.name,
                message=(
                    f"The seed {part.name} has {listed(columns)}. A repository retains each version, and no plan "
                    "erases a repository."
                ),
                todo="Load such rows from a source, and remove the file from the history.",
                columns=tuple(columns),
            )


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")
