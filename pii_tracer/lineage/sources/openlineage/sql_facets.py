"""SQL that runs tell in their events, each text parsed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.lineage.sources.evidence_merging import Proof, united
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.openlineage.events import Events
from pii_tracer.lineage.sources.openlineage.own_names import OwnNames, own_names, together
from pii_tracer.lineage.sources.openlineage.run_merging import Run
from pii_tracer.lineage.sources.openlineage.schema_history import Eras, Statements
from pii_tracer.lineage.sources.openlineage.sql_dialects import QUOTES_BY_SETTING, QUOTES_TEXT, in_double_quotes
from pii_tracer.lineage.sources.statement_facts import SPARK, Told, parsed
from pii_tracer.lineage.sources.statement_templates import skeleton, stands_for_all
from pii_tracer.lineage.sql.known_dialects import known_dialect
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

Text = tuple[str, str]
"""A text and the dialect its event names, or an empty one."""


def told_by_events(events: Events, dialect: str, names: Names, eras: Eras, ledger: Ledger) -> list[Told]:
    """The statements of all runs, in the order in which their texts were first run. names: what SQL files taught."""
    proofs = _proofs(events)
    for run in events.runs:
        _doubt_quotes(run, dialect, ledger)
    read = _Reader(dialect, names, eras, ledger, own_names(events.runs, ledger.identities))
    told: list[Told] = []
    for group in sorted(_groups(proofs), key=lambda g: min((p.first, t) for t in g for p in proofs[t])):
        latest = max(group, key=lambda t: (max(p.last for p in proofs[t]), t))
        everybody = united(p for text in group for p in proofs[text])
        told_once = read.text(latest, everybody, tuple(group))
        if len(group) == 1 or stands_for_all(latest[0], [one.made for one in told_once]):
            told += told_once
        else:
            told += [one for text in group for one in read.text(text, proofs[text], (text,))]
    return told


def _doubt_quotes(run: Run, dialect: str, ledger: Ledger) -> None:
    """A gap where a name of the run's own tables stands in double quotes, and nobody knows what these mean there.

    Of a dialect in which a setting decides it, also where an event or the place of the tables tells the dialect.
    """
    columns = {c.name.lower() for d in run.inputs for c in ledger.columns.get(d, ())}
    tables = run.inputs | run.outputs
    words = columns | {c.name.lower() for d in tables for c in ledger.columns.get(d, ())}
    words |= {part.lower() for d in tables for part in d.name.replace('"', "").split(".")}
    for text, named in run.sql:
        if not (dialect in QUOTES_TEXT if not named else named in QUOTES_BY_SETTING):
            continue
        if not in_double_quotes(text) & (columns if named else words):
            continue
        why = "unless a setting makes them names" if named else "and no event names its dialect"
        reason = (
            f"the SQL of job {run.proof.job} has names of its tables in double quotes, which mean texts in "
            f"{named or dialect}, {why}"
        )
        closes = "let the sender of the events report the dialect, or set it in the estate file"
        if named:
            closes = "write the names without double quotes or in backticks, or add the columns to the events"
        for output in sorted(run.outputs - run.told) if run.outputs else (None,):
            ledger.gap(output, LineageGapKind.UNKNOWN_DIALECT, reason, run.proof, closes)


def _proofs(events: Events) -> dict[Text, tuple[Proof, ...]]:
    """Who tells each text, one proof a job."""
    found: dict[Text, list[Proof]] = {}
    for run in events.runs:
        for text in run.sql:
            own = Proof("sql", run.proof.job, run.proof.first, run.proof.last, run.proof.runs)
            found.setdefault(text, []).append(own)
    return {text: united(proofs) for text, proofs in found.items()}


def _groups(texts: Iterable[Text]) -> Iterable[list[Text]]:
    """Texts that differ in dates and run ids only."""
    groups: dict[Text, list[Text]] = {}
    for text in texts:
        groups.setdefault((skeleton(text[0]), text[1]), []).append(text)
    return groups.values()


@dataclass(frozen=True)
class _Reader:
    """Parses texts, with the columns of today and, where they differ, of the time."""

    dialect: str
    names: Names
    eras: Eras
    ledger: Ledger
    own: Mapping[Text, OwnNames]

    def text(self, text: Text, proofs: Sequence[Proof], texts: tuple[Text, ...]) -> list[Told]:
        """The statements of a text; texts: all those it stands for."""
        proofs = sorted(proofs, key=lambda p: p.key)
        kind = self._dialect(text[1], proofs[0])
        own = together([self.own[one] for one in texts])
        columns = {name: [(c.name, c.type) for c in self.ledger.columns.get(d, ())] for name, d in own.names}
        new = [name for name in columns if not self.names.columns(name)]
        for name in new:
            self.names.learn(name, columns[name])
        made: Statements = parsed(text[0], self.names, kind, proofs[0], self.ledger)
        for name in new:  # another event may mean another table by it
            self.names.forget(name)
        moments = sorted({p.first[0] for p in proofs} | {p.last[0] for p in proofs})
        made, old = self.eras.resolved(
            text[0],
            moments,
            made,
            lambda known: parsed(text[0], Names({**known, **columns}), kind, proofs[0], self.ledger),
        )
        told = [
            Told(one, proof, texts, rebuild=kind in SPARK and not columns, own=own) for one in made for proof in proofs
        ]
        return told + [Told(one, proof, texts, rebuild=False, own=own) for one in old for proof in proofs]

    def _dialect(self, named: str, proof: Proof) -> str:
        """The dialect an event names; one that nobody knows is told, and the estate's is tried."""
        try:
            return known_dialect(named) if named else self.dialect
        except LineageError as error:
            self.ledger.gap(
                None, LineageGapKind.UNKNOWN_DIALECT, error.what, proof, "set the dialect in the estate file"
            )
            return self.dialect
