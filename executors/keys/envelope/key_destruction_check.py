"""The executor of destroyed keys: waits for the caches, then tries to read what was encrypted.

The key itself leaves its table by the table's own executor. Here nothing is written: a step is done when the key table
has no key of the person, the longest cache lifetime since then is over, and the ciphertext does not open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from executors.context import ExecutionContext
from pii_tracer.common.plurals import counted
from pii_tracer.config.keys import Encrypted, KeyTable, KmsWrapping
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.keys.envelope.cells import Binding, Mode
from pii_tracer.lake.keys.envelope.columns import Keys, decrypt_all
from pii_tracer.lake.keys.envelope.key_wrapping import Kms, LocalFile, Wrapper
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import EstateError, RunError, ShredError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

if TYPE_CHECKING:
    import pyarrow as pa

_KEK_SECONDS = 60.0
_ROWS = 100_000
"""Most rows of a dataset that are opened when reading is tried; the facts say how many there are."""


class ShredExecutor:
    """Executor `shred`."""

    name = "shred"

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` when the estate file does not declare the keys or the dataset any more."""
        table = self._table(step)
        if step.action is Action.KEY_TRY_TO_READ:
            self._entry(step, table)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Wait until the caches are over, or try to read."""
        if step.action is Action.KEY_AWAIT_CACHES:
            until = self._over(step)
            facts = {"caches_over": until.isoformat(), "cache_seconds": step.parameters["cache_seconds"]}
            return Outcome(facts, waiting_until=until if self._ctx.now() < until else None)
        return Outcome(self._tried(step).facts)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Look into the key table, or try to read again."""
        if step.action is Action.KEY_TRY_TO_READ:
            tried = self._tried(step)
            left = self._keys_left(step, self._table(step).table, step.parameters["key_terms"])
            back = (f"the key table has {counted(left, 'key')} of the person: cells can be decrypted",) if left else ()
            return Check(not (tried.findings or back), (*tried.findings, *back), tried.facts)
        findings = []
        if copy is None or copy.match is None:
            raise RunError("the step has no copy to search", where=step.id, todo="make the plan again")
        left = self._keys_left(step, copy.location, [(t.column, t.key_set) for t in copy.match.terms if not t.access])
        if left:
            findings.append(f"the key table still has {counted(left, 'key')} of the person")
        if self._ctx.now() < self._over(step):
            findings.append("a reader may still have the key in its cache")
        return Check(not findings, tuple(findings), {"keys_left": left})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """Both steps only look, so that doing one again harms nobody."""
        return Progress.DONE if self.verify(step, copy).ok else Progress.NOT_STARTED

    def _over(self, step: Step) -> datetime:
        """When no cache can hold the key any more: from the verification of the last step that removed it."""
        verified = [self._ctx.verified_at(before) for before in step.depends_on]
        destroyed = max((at for at in verified if at is not None), default=None)
        if destroyed is None:
            raise RunError(
                "the journal does not say when the key was destroyed", where=step.id, todo="run `pii-tracer resume`"
            )
        return destroyed + timedelta(seconds=int(step.parameters["cache_seconds"]))

    def _table(self, step: Step) -> KeyTable:
        for table in self._ctx.estate.keys:
            if table.name == step.parameters.get("keys"):
                return table
        raise _undeclared(step)

    def _entry(self, step: Step, table: KeyTable) -> Encrypted:
        for entry in table.encrypts:
            if entry.dataset == step.parameters.get("encrypted"):
                return entry
        raise _undeclared(step)

    def _keys_left(self, step: Step, where: str, terms: Sequence[Sequence[str]]) -> int:
        """Rows of the persons in the key table as it is now; older states are the byte verifier's matter.

        terms: columns of the key table, and the key sets they are compared with.
        """
        if not terms:
            raise RunError(
                "the plan does not name the columns that find the keys", where=step.id, todo="make the plan again"
            )
        rows = self._read(where, sorted({column for column, _ in terms}))
        marks = []
        for column, key_set in terms:
            values = {v for _, v in self._ctx.keyring.key_set(key_set).values}
            marks.append([v is not None and str(v) in values for v in rows.column(column).to_pylist()])
        return sum(any(row) for row in zip(*marks, strict=True))

    def _tried(self, step: Step) -> _Tried:
        table = self._table(step)
        entry = self._entry(step, table)
        own = [table.kms_key_column] if table.kms_key_column else []
        keys = self._read(table.table, [table.reference, table.wrapped_column, *own])
        names = [str(v) for v in keys.column(table.reference).to_pylist()]
        wrapped = dict(zip(names, keys.column(table.wrapped_column).to_pylist(), strict=True))
        under = dict(zip(names, keys.column(own[0]).to_pylist(), strict=True)) if own else {}
        wrappers = {key_id: self._wrapper(table, key_id) for key_id in {None, *under.values()}}
        encrypted = sorted(entry.encrypted)
        rows = self._read(step.parameters["location"], [entry.key_column, *encrypted])
        return _try(entry, rows, wrapped, lambda person: wrappers[under.get(person)])

    def _wrapper(self, table: KeyTable, key_id: str | None) -> Wrapper:
        """The wrapper of the whole table, or of one person's own KMS key."""
        how = table.wrapping
        if isinstance(how, KmsWrapping):
            return Wrapper(Kms(key_id or how.key_id, how.region, how.endpoint_url), _KEK_SECONDS)
        return Wrapper(LocalFile(str(self._ctx.base / how.file)), _KEK_SECONDS)

    def _read(self, name: str, columns: list[str]) -> pa.Table:
        paths = EstatePaths(self._ctx.estate, self._ctx.base)
        try:
            for state in discover(self._ctx.estate, self._ctx.base).tables:
                if _called(name, state):
                    return read_columns(state, list(dict.fromkeys(columns)), paths)
        except EstateError as error:
            raise RunError(error.what, where=error.where, todo=error.todo) from None
        raise RunError(
            "the table was not found", where=name, todo="use a name that `pii-tracer inventory` lists, then plan again"
        )


def _called(name: str, state: TableState) -> bool:
    places = {state.location, state.dataset.name}
    return (state.table or "").lower() == name.lower() or any(p == name or p.endswith("/" + name) for p in places)


def _undeclared(step: Step) -> RunError:
    return RunError("the estate file does not declare these keys any more", where=step.id, todo="make the plan again")


@dataclass(frozen=True)
class _Tried:
    findings: tuple[str, ...]
    facts: dict[str, Any]


def _try(entry: Encrypted, rows: pa.Table, wrapped: dict[str, bytes], wrapper: Callable[[str], Wrapper]) -> _Tried:
    """Open the cells of everybody who has a key: all must open. Cells without a key are ciphertext and stay so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = rows.num_rows
    with_key = pc.is_in(
        pc.cast(rows.column(entry.key_column), pa.string()), value_set=pa.array(sorted(wrapped), pa.string())
    )
    readable = rows.filter(with_key).slice(0, _ROWS)
    persons = pc.cast(readable.column(entry.key_column), pa.string()).combine_chunks()
    facts: dict[str, Any] = {
        "rows": total,
        "rows_without_key": total - int(pc.sum(with_key).as_py() or 0),
        "rows_opened": readable.num_rows,
    }
    try:
        names = persons.unique().to_pylist()
        opened = Keys({p: wrapper(p).unwrap(p, wrapped[p]) for p in names})
        columns = []
        for name in sorted(entry.encrypted):
            mode = Mode.EQUAL if name in entry.equal else Mode.RANDOM
            columns.append((readable.column(name), _binding(entry, name, mode)))
        decrypt_all(columns, persons, opened)
    except ShredError as error:
        return _Tried((f"cells of other people cannot be decrypted: {error.what}",), facts)
    return _Tried((), facts)


def _binding(entry: Encrypted, column: str, mode: Mode) -> Binding:
    return Binding(entry.binding or entry.dataset, column, mode)
