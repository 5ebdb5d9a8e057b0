"""SQL to lineage: statements one by one, or a script contracted from its first sources to its last targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from pii_tracer.lineage.sql import writes
from pii_tracer.lineage.sql.accounting.administration import administration, kind_of
from pii_tracer.lineage.sql.accounting.called_routines import called_for_effect
from pii_tracer.lineage.sql.accounting.harmless_statements import without_data
from pii_tracer.lineage.sql.accounting.meaning_changing_settings import filled_in, read_otherwise
from pii_tracer.lineage.sql.accounting.unfollowed_moves import reason_of
from pii_tracer.lineage.sql.clone_call_alter import altered, called, cloned, moved, tended
from pii_tracer.lineage.sql.intermediate_tables import Before, Intermediate, after, replaces_partitions
from pii_tracer.lineage.sql.known_dialects import known_dialect
from pii_tracer.lineage.sql.multi_inserts import inserts
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import Relation, table_relation
from pii_tracer.lineage.sql.statement_audit import audit
from pii_tracer.lineage.sql.statement_effects import Draft, Effect, StatementLineage, through_view
from pii_tracer.lineage.sql.statements import file_statements
from pii_tracer.lineage.sql.statements.create_statements import created, learn_variables
from pii_tracer.lineage.sql.statements.maintained_tables import takes_in_alone
from pii_tracer.lineage.sql.statements.merge_statements import merged
from pii_tracer.lineage.sql.statements.trigger_rows import of_table
from pii_tracer.lineage.sql.statements.update_statements import updated
from pii_tracer.lineage.sql.text.current_database import current_database
from pii_tracer.lineage.sql.text.dynamic_statements import Dynamic, dynamic_of, task_of
from pii_tracer.lineage.sql.text.global_temp_views import is_global_view
from pii_tracer.lineage.sql.text.multi_target_writes import hoisted
from pii_tracer.lineage.sql.text.names_inside_tables import parts_of
from pii_tracer.lineage.sql.text.script_splitting import (
    Statement,
    call_of,
    clone_of,
    evolves,
    prepared,
    recut,
    split,
    uncommented,
)
from pii_tracer.lineage.sql.text.statement_parsing import parsed
from pii_tracer.lineage.sql.text.table_moves import Move, moves_of
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.errors import LineageError


@dataclass
class Script:
    """Statements of one session, in order. contract: tables written here are seen through, like temporary views.

    look: is shown each statement's tree before it is resolved. used: the database that a statement chose (USE).
    branch: others may run in the statement's place, so that what was there before it may be read after it.
    created, shown: tables, and views and other names of tables, that its statements made.
    dynamic: INSERT OVERWRITE leaves the partitions that it has no rows for.
    """

    names: Names
    dialect: str
    contract: bool = False
    views: dict[str, Intermediate] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    look: Callable[[exp.Expression], None] | None = None
    used: str = ""
    branch: bool = False
    dynamic: bool = False

    def run(self, sql: str) -> list[StatementLineage]:
        """The lineage of every write of a text.

        Raises:
            LineageError: the text cannot be cut into statements.
        """
        try:
            statements = split(sql, self.dialect)
        except (SqlglotError, ValueError) as error:
            raise LineageError(
                f"the SQL cannot be read: {_short(error)}", todo="correct the SQL, or name its dialect"
            ) from None
        doubt = read_otherwise(sql, self.dialect, [one.text for one in statements], self.names.given)
        if doubt is not None:
            statements = [replace(one, doubt=one.doubt or doubt) for one in statements]
        defaults = self.names.begin(sql)
        try:
            return self._all(statements)
        finally:
            self.names.defaults, self.used, self.dynamic = defaults, "", False

    def _all(self, statements: Sequence[Statement]) -> list[StatementLineage]:
        made: list[StatementLineage] = []
        for loop, group in groupby(statements, lambda one: one.loop):
            found = list(group)
            once = [one for statement in found for one in self.statement(statement)]
            made += [*once, *self._again(found, once)] if loop and self.views else once
        return made

    def _again(self, loop: Sequence[Statement], once: Sequence[StatementLineage]) -> Iterator[StatementLineage]:
        """A loop runs again: what is seen through may have got other columns since its statements ran."""
        told = {edge.way for one in once for edge in one.edges}
        for last in (False, True):
            found = [one for statement in loop for one in self.statement(statement)]
            if not (fresh := {edge.way for one in found for edge in one.edges} - told):
                return
            told |= fresh
            yield from (replace(one, reasons=(*one.reasons, _LOOP)) for one in found) if last else found

    def _use(self, defaults: list[str]) -> None:
        """Names without a database mean tables of another one from here on. Temporary views are in none."""
        own = {
            key: key.rpartition(".")[2]
            for key, view in self.views.items()
            if view.made[-1:] and view.made[-1][0] == key
        }
        self.names.defaults, self.used = defaults, ".".join(defaults)
        for key, name in own.items():
            self.views[self.names.of_text(name).lower()] = self.views.pop(key)

    def statement(self, statement: Statement) -> list[StatementLineage]:
        """One statement; what cannot be resolved comes out with its reasons."""
        self.branch = statement.branch
        self.dynamic = replaces_partitions(statement.text, self.dynamic)
        if not statement.text:
            return [self._failed(statement, statement.doubt or "")]
        try:
            made = self._statement(statement)
            if any(m.opaque and m.effect is Effect.NONE for m in made):
                parts = recut(statement, self.dialect)
                if len(parts) > 1:
                    return [one for part in parts for one in self.statement(part)]
            return [replace(m, reasons=(*m.reasons, statement.doubt)) for m in made] if statement.doubt else made
        except SqlglotError as error:
            parts = recut(statement, self.dialect)
            if len(parts) > 1:
                return [made for part in parts for made in self.statement(part)]
            return [self._failed(statement, f"the statement cannot be parsed: {_short(error)}")]
        except RecursionError:
            return [self._failed(statement, "the statement is nested too deeply")]
        except Exception as error:  # a statement of a form nobody foresaw: a gap, never a crash
            return [self._failed(statement, f"lineage could not resolve the statement ({type(error).__name__})")]

    def _failed(self, statement: Statement, reason: str) -> StatementLineage:
        why = (reason_of(statement.text, reason),)
        return StatementLineage(statement.text, statement.line, Effect.NONE, reasons=why, opaque=True)

    def _query(self) -> Query:
        query = Query(self.names, self._base, self.dialect)

        def lookup(name: str) -> Relation:
            query.findings.read[name] = None
            view = self.views.get(name.lower())
            if view is None:
                return self._base(name)
            query.findings.tables.pop(name, None)
            query.findings.tables.update(dict.fromkeys(view.tables))
            query.findings.reasons.update(dict.fromkeys(view.reasons))
            query.findings.views.update(dict.fromkeys(view.made))
            return view.relation

        query.lookup = lookup
        return query

    def _base(self, name: str) -> Relation:
        return table_relation(name, self.names.columns(name), loose=self.names.loose(name))

    def _statement(self, statement: Statement) -> list[StatementLineage]:
        query, text = self._query(), uncommented(statement.text, self.dialect)
        used = current_database(text, self.dialect, self.names.defaults)
        if used is not None:
            self._use(used)
        moves = moves_of(text, self.dialect)
        if used is not None or moves == () or administration(text) is not None or takes_in_alone(text):
            return [self._finish(statement, query, tended(query, text))]
        dynamic = dynamic_of(text, self.dialect)
        if dynamic is not None:
            return self._run(statement, dynamic)
        clone = clone_of(text)
        if clone is not None:
            return [self._finish(statement, query, cloned(query, clone))]
        call = call_of(text)
        if call is not None:
            return [self._finish(statement, query, called(query, call))]
        if moves is not None:
            return self._moved(statement, moves)
        task = task_of(text)
        if task is not None:
            return self._statement(replace(statement, text=task))
        for node in parsed(prepared(text), self.dialect):
            if self.look is not None:
                self.look(node)
            if statement.rows is not None:
                of_table(node, statement.rows, self.dialect)
            if isinstance(node, exp.MultitableInserts):
                return self._inserts(statement, node)
            made = []
            for part in hoisted(node):
                query = self._query()
                query.findings.evolves = evolves(text)
                draft = self._draft(query, part, statement.text)
                made.append(self._finish(statement, query, draft))
                if draft.computed and not self.contract:  # of rows to come: they are told with what is written
                    of_itself = Draft(Effect.CHANGE, draft.output, draft.computed, makes=True)
                    made.append(self._finish(statement, query, of_itself))
            return made
        return []

    def _run(self, statement: Statement, dynamic: Dynamic) -> list[StatementLineage]:
        """The statements of a text that is run; they are recorded as the statement that runs it."""
        parts = split(dynamic.text, self.dialect) if dynamic.text else []
        made = self._all(parts)
        if dynamic.doubt is not None and not any(one.effect not in _READS for one in made):
            made.append(self._failed(statement, dynamic.doubt))
        doubts = () if dynamic.doubt is None else (dynamic.doubt,)
        return [
            replace(one, sql=statement.text, line=statement.line, reasons=tuple(dict.fromkeys((*one.reasons, *doubts))))
            for one in made
        ]

    def _inserts(self, statement: Statement, node: exp.MultitableInserts) -> list[StatementLineage]:
        """Several INSERTs of one statement: all read what was there before it."""
        made = []
        for insert, doubt in inserts(node):
            query = self._query()
            if doubt is not None:
                query.findings.opaque = True
                query.findings.doubt(doubt)
            made.append((query, self._draft(query, insert, statement.text)))
        return [self._finish(statement, query, draft) for query, draft in made]

    def _moved(self, statement: Statement, moves: Sequence[Move]) -> list[StatementLineage]:
        made = []
        for move in moves:
            query = self._query()
            made.append((query, moved(query, move)))  # an exchange: both sides as they were before
        return [self._finish(statement, query, draft) for query, draft in made]

    def _draft(self, query: Query, node: exp.Expression, text: str) -> Draft:
        """What a statement writes; whatever is in it and no rule followed makes it partial."""
        draft = self._resolved(query, node, text)
        for unknown in (*called_for_effect(node, self.dialect), *filled_in(node, self.dialect)):
            query.findings.doubt(unknown)
        if draft is None:
            query.findings.opaque = True
            kind = node.name if isinstance(node, exp.Command) else node.key
            query.findings.doubt(
                reason_of(text, f"a statement of kind {kind_of(text) or kind.upper()} is not supported")
            )
            return Draft(Effect.NONE, None)
        return draft

    def _resolved(self, query: Query, node: exp.Expression, text: str) -> Draft | None:
        if (
            isinstance(node, exp.Create)
            and node.kind == "VIEW"
            and node.expression is None
            and node.find(exp.OnProperty)
        ):
            return None  # Oracle's MATERIALIZED VIEW LOG ON a table, which the parser takes for a view
        for kind, handler in _HANDLERS:
            if isinstance(node, kind):
                draft = handler(query, node)
                if draft.output is not None or draft.effect is not Effect.NONE:
                    audit(node, query.findings, self.names)
                return draft
        if isinstance(node, exp.Drop):
            return self._dropped(query, node)
        if isinstance(node, exp.Declare):
            learn_variables(self.names, node)
        return tended(query, uncommented(text, self.dialect)) if without_data(node) else None

    def _dropped(self, query: Query, node: exp.Drop) -> Draft:
        tables = [t for t in node.args.get("tables") or [node.this] if isinstance(t, exp.Table)]
        names = [query.names.of(t) for t in tables]
        for name in names if not self.branch else ():
            self.views.pop(name.lower(), None)
            self.names.forget(name)
        return Draft(Effect.DROP, names[0] if names else None)

    def _finish(self, statement: Statement, query: Query, draft: Draft) -> StatementLineage:
        if draft.effect in _INTO_ROWS and not draft.makes and (draft.output or "").lower() in self.shown:
            query.findings.doubt(through_view(str(draft.output)))
        edges = draft.edges(self.dialect)
        passing = draft.effect is Effect.TEMPORARY  # what reads it says which columns there are
        unnamed = (e.source[0] for e in edges if e.source[1] == "*" and not (passing and e.target[1] == "*"))
        for table in dict.fromkeys(unnamed):
            if not any(table in reason for reason in query.findings.reasons):
                query.findings.doubt(f"the columns of {table} are not known: add its schema to the lineage sources")
        made = StatementLineage(
            sql=statement.text,
            line=statement.line,
            effect=draft.effect,
            output=draft.output,
            inputs=tuple(query.findings.tables),
            read=tuple(query.findings.read),
            edges=edges,
            indirect=tuple(query.findings.indirect),
            columns=tuple(f.name for f in draft.fields) if not draft.unknown else (),
            location=draft.location,
            partition_at=draft.partition_at,
            reasons=tuple(query.findings.reasons),
            assumed=tuple(query.findings.assumed),
            opaque=query.findings.opaque,
            emptied=draft.emptied,
            views=tuple(query.findings.views),
            makes=draft.makes or draft.effect in (Effect.CLONE, Effect.RENAME),
            filling=draft.filling(self.dialect),
            database=self.used,
        )
        self._remember(draft, made)
        return made

    def _remember(self, draft: Draft, made: StatementLineage) -> None:
        if draft.output is None or draft.output == writes.BARE:
            return
        key = draft.output.lower()
        whole = draft.effect in (Effect.REPLACE, Effect.VIEW, Effect.TEMPORARY, Effect.CLONE)
        created, given = key in self.created, self.names.given(key)
        if whole or draft.effect is Effect.SCHEMA:
            self.created.add(key)
            if draft.effect in (Effect.VIEW, Effect.TEMPORARY):
                self.shown.add(key)
            elif draft.makes or draft.effect is Effect.CLONE:
                self.shown.discard(key)
        lasts = draft.effect is not Effect.TEMPORARY or is_global_view(draft.output)
        part = any(parts_of(draft.output))  # a table's branch has no columns of its own; a table of such a name has
        if whole and lasts and (made.makes if part else made.columns):
            others = [c for c in self.names.columns(draft.output) if self.branch and c[0] not in made.columns]
            self.names.learn(draft.output, [*((c, "") for c in made.columns), *others])
        if draft.effect is Effect.RENAME and made.inputs and made.inputs[0].lower() in self.views:
            self.views[key] = self.views.pop(made.inputs[0].lower())
            return
        if draft.effect is Effect.TEMPORARY or (self.contract and draft.effect is not Effect.SCHEMA):
            stays = given and not created and self._may_stay(draft)
            whole = (whole and not draft.partly and not stays) or draft.effect is Effect.RENAME
            order = () if self.names.loose(key) else tuple(c for c, _ in self.names.columns(key))
            before = Before(self.views.get(key), self._base(draft.output), created, stays, order)
            seen = after(draft, made, before, whole=whole, branch=self.branch)
            if seen is not None:
                self.views[key] = seen

    def _may_stay(self, draft: Draft) -> bool:
        """Whether rows that were in a table may still be there after it was overwritten."""
        overwrites = draft.effect in (Effect.REPLACE, Effect.CLONE) and not draft.fresh
        return overwrites and (draft.partly or draft.optional or self.branch or (self.dynamic and not draft.makes))


_LOOP = "a loop fills a table that it also reads, which lineage does not follow completely"
_INTO_ROWS = frozenset({Effect.APPEND, Effect.CHANGE, Effect.REPLACE})
_READS = frozenset({Effect.QUERY, Effect.NONE})
_HANDLERS: Sequence[tuple[type | tuple[type, ...], Callable[[Query, Any], Draft]]] = (
    (exp.Create, created),
    (exp.Insert, writes.inserted),
    (exp.Merge, merged),
    (exp.Update, updated),
    (exp.Delete, writes.deleted),
    (exp.Copy, file_statements.copied),
    (exp.LoadData, file_statements.loaded),
    (exp.Export, file_statements.exported),
    (exp.Alter, altered),
    (exp.Cache, writes.cached),
    ((exp.Query, exp.Values), writes.selected),
)
_QUOTED_TEXT = re.compile(r"\s*but got\b.*|<Token.*|['\"].*", re.DOTALL)
"""Where a parser's message goes on to show the text."""


def _short(error: Exception) -> str:
    """Where, not what: the text of a statement may hold a person's value."""
    errors = getattr(error, "errors", None)
    if errors:
        first = errors[0]
        what = _QUOTED_TEXT.sub("", str(first.get("description", "syntax error"))).strip()
        return f"{what} (line {first.get('line')}, column {first.get('col')})"
    return type(error).__name__


def parse_statements(
    sql: str,
    dialect: str = "spark",
    schemas: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    default_db: str | None = None,
    default_schema: str | None = None,
    *,
    contract: bool = False,
) -> list[StatementLineage]:
    """The lineage of every write of a text, in order.

    schemas: columns (name, DDL type or "") by table. contract: intermediate tables are seen through as well.

    Raises:
        LineageError: the text cannot be cut into statements, or the dialect is not known.
    """
    return Script(Names(schemas or {}, default_db, default_schema), known_dialect(dialect), contract).run(sql)
