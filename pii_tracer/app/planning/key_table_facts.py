"""What planning must know of key tables and only reading tells: who shares a key with whom, and what KMS says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pii_tracer.app.planning.plaintext_cells import plain_cells
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.keys import KeyTable, KmsWrapping
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.keys.key_facts import KeyFacts, KmsKey
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.errors import EstateError
from pii_tracer.model.number_keys import spelled
from planners.copies.classification import match_of
from planners.copies.person_rows import leaves
from planners.keys.key_table_lineage import state_of
from planners.locate.subject_survey import Survey

UNKNOWN = "unknown"
"""State of a key that KMS tells nothing of: a gap, and a step that fails before it begins."""


def key_facts(
    estate: Estate, surveys: Sequence[Survey], inventory: Inventory, paths: EstatePaths, say: Callable[[str], None]
) -> Mapping[str, KeyFacts]:
    """By name of a key table. A table that cannot be read is said to be unread, never to be nobody's."""
    found = {}
    asked = {survey.subject.name for survey in surveys}
    for table in (t for t in estate.keys if t.subject in asked):
        say(f"reading whose keys are in {table.table}")
        try:
            mine, others = _rows(table, surveys, inventory, paths)
            known = _values(others, table.reference) - _values(mine, table.reference)
            say(f"checking whether what {table.table} encrypts looks like encrypted cells")
            plain = plain_cells(table, known, inventory, paths)
            found[table.name] = _facts(table, mine, others).model_copy(update={"plain": plain})
        except EstateError as error:
            found[table.name] = KeyFacts(unread=error.what)
    return found


Rows = list[dict[str, Any]]


def _rows(table: KeyTable, surveys: Sequence[Survey], inventory: Inventory, paths: EstatePaths) -> tuple[Rows, Rows]:
    """The persons' rows of a key table, and everybody else's."""
    state = state_of(table.table, inventory.tables)
    survey = next((s for s in surveys if s.subject.name == table.subject), None)
    match = match_of(survey, state, {s.location: s for s in inventory.tables}) if survey and state else None
    if state is None or survey is None or match is None:
        return [], []
    values = {t.key_set: spelled(survey.key_sets[t.key_set]) for t in match.terms}
    own = [table.kms_key_column] if table.kms_key_column else []
    columns = sorted({table.reference, table.wrapped_column, *own, *match.columns})
    mine: Rows = []
    others: Rows = []
    for row in read_columns(state, columns, paths).to_pylist():
        (mine if any(text in values[t.key_set] for t in match.terms for text in leaves(row, t)) else others).append(row)
    return mine, others


def _facts(table: KeyTable, mine: Rows, others: Rows) -> KeyFacts:
    shared = sum(len(_values(mine, c) & _values(others, c)) for c in {table.reference, table.wrapped_column})
    how = table.wrapping
    if not isinstance(how, KmsWrapping):
        return KeyFacts(shared=shared)
    whole = _state(how.key_id, how)
    names = _values(mine, table.kms_key_column) if table.kms_key_column else set()
    foreign = {_id(name) for name in _values(others, table.kms_key_column)} if table.kms_key_column else set()
    # an alias can mean any key, in whoever's row it stands: nobody's key is deleted then
    aliases = any("alias/" in name for name in names | foreign)
    unsafe = {name for name in names if aliases or _id(name) in foreign or _id(name) == _id(whole.key_id)}
    own = tuple(_state(name, how) for name in sorted(names - unsafe))
    return KeyFacts(kms=whole, own=own, shared=shared, shared_kms=len(unsafe))


def _values(rows: Iterable[Mapping[str, Any]], column: str | None) -> set[Any]:
    return {row[column] for row in rows if column and row[column] is not None}


def _id(name: str) -> str:
    """Id in an ARN or by itself; replicas of one key have the same."""
    return str(name).rsplit("key/", 1)[-1]


def _state(key_id: str, how: KmsWrapping) -> KmsKey:
    from pii_tracer.lake.keys.kms.key_state import kms_key

    try:
        return kms_key(key_id, how.region, how.endpoint_url)
    except EstateError:
        return KmsKey(key_id=key_id, region=how.region, state=UNKNOWN)
