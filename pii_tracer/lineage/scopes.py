"""Scopes: which relations a column name can mean, inside and around a SELECT."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from pii_tracer.lineage.edges import Subtype
from pii_tracer.lineage.relations import TRANSFORMATION, Alt, Dep, Field, Relation, limited


@dataclass
class Findings:
    """What one statement's resolution leaves behind beside its columns.

    indirect: (table, column, subtype) of the whole output. reasons: why the answer is not complete.
    tables: where columns come from; read: the tables as the statement names them, views included.
    """

    indirect: dict[tuple[str, str, Subtype], None] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    tables: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    opaque: bool = False

    def note(self, item: Field, subtype: Subtype) -> None:
        """Every column behind this one decides about the whole output."""
        for dep in item.deps():
            self.indirect[dep.table, dep.column, subtype] = None

    def doubt(self, reason: str) -> None:
        """The answer is not complete."""
        self.reasons[reason] = None


@dataclass
class Source:
    """One relation of a FROM clause. names: what it may be called in front of a column, lower case."""

    names: tuple[str, ...]
    relation: Relation
    unseen: frozenset[str] = frozenset()


@dataclass
class Scope:
    """The relations of one SELECT; `outer` is the scope a correlated subquery or a lateral join sees as well."""

    findings: Findings
    sources: list[Source] = field(default_factory=list)
    outer: Scope | None = None
    aliases: dict[str, Field] = field(default_factory=dict)

    def column(self, node: exp.Column, *, aliases_first: bool = False) -> Field:
        """What a column reference means; unknown ones are noted and stand for nothing."""
        parts = [p.name for p in node.parts]
        found = self._lookup(parts, aliases_first=aliases_first)
        if found is not None:
            return found
        self.findings.doubt(f"column {'.'.join(parts)} was not found in any table of its scope")
        everything = tuple(dict.fromkeys(_weak(d) for s in self.sources for d in s.relation.all_deps()))
        return Field(parts[-1], (Alt(None, everything),))

    def _lookup(self, parts: list[str], *, aliases_first: bool) -> Field | None:
        first = parts[0].lower()
        if aliases_first and len(parts) == 1 and first in self.aliases and not self._certain(parts[0]):
            return self.aliases[first]
        found = self._qualified(parts) or self._certain(parts[0], parts[1:])
        if found is None and first in self.aliases:
            found = member(self.aliases[first], parts[1:])
        if found is None and self.outer is not None and self.outer._names(parts):
            return self.outer._lookup(parts, aliases_first=False)
        return found or self._guessed(parts)

    def _names(self, parts: list[str]) -> bool:
        """True when what stands before the column is the name of a relation here or further out."""
        prefixes = {".".join(parts[:n]).lower() for n in range(1, len(parts))}
        here = any(prefixes & set(s.names) for s in self.sources)
        return here or (self.outer is not None and self.outer._names(parts))

    def _qualified(self, parts: list[str]) -> Field | None:
        for length in range(len(parts) - 1, 0, -1):
            prefix = ".".join(parts[:length]).lower()
            for source in self.sources:
                if prefix in source.names:
                    found = source.relation.get(parts[length])
                    if found is not None:
                        return member(found, parts[length + 1 :])
        return None

    def _certain(self, name: str, rest: list[str] | None = None) -> Field | None:
        """A column that schemas show; of several (a join's two sides) all, and that is noted."""
        found = [f for s in self.sources if name.lower() not in s.unseen and (f := s.relation.known(name))]
        if len(found) > 1:
            self.findings.doubt(f"column {name} is ambiguous")
        if not found:
            return None
        one = found[0] if len(found) == 1 else Field(name, limited(a for f in found for a in f.alts))
        return member(one, rest or [])

    def _guessed(self, parts: list[str]) -> Field | None:
        """A column of the table whose columns are not known; with several such tables it may be of any."""
        if self._names(parts):
            return None
        opens = [s for s in self.sources if s.relation.open and parts[0].lower() not in s.unseen]
        found = [f for s in opens if (f := s.relation.get(parts[0])) is not None]
        if len(found) > 1:
            tables = ", ".join(sorted({t for s in opens for t in s.relation.bases()}))
            self.findings.doubt(f"column {parts[0]} may come from any of {tables}: their schemas are not given")
        if found:
            return member(Field(parts[0], limited(a for f in found for a in f.alts)), parts[1:])
        return self.outer._lookup(parts, aliases_first=False) if self.outer is not None else None


def _weak(dep: Dep) -> Dep:
    return Dep(dep.table, dep.column, TRANSFORMATION.then(dep.kind))


def member(item: Field, path: list[str]) -> Field:
    """A field of a struct, and of the struct in it."""
    for name in path:
        item = _member(item, name)
    return item


def _member(item: Field, name: str) -> Field:
    alts: list[Alt] = []
    for alt in item.alts:
        if name.lower() in alt.members:
            alts += alt.members[name.lower()].alts
            continue
        text = exp.Dot(this=alt.expression.copy(), expression=exp.to_identifier(name)) if alt.expression else None
        alts.append(Alt(text, tuple(_weak(d) for d in alt.deps)))
    return Field(name, limited(alts))
