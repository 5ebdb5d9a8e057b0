"""Columns that number rows and not persons: the search takes no number in them for a person's."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import Identifier, Subject, SubjectTable
from pii_tracer.model.datasets import Carries, FieldAccess
from planners.copies.derived_keys import derive
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve, with_table
from planners.copies.row_number_columns import numbered_columns
from planners.locate.identifier_traces import ColumnCarriage, Trace
from planners.locate.key_location import Carriage
from planners.locate.subject_survey import Survey
from tests.planners.estates import dataset

ORDERS = SubjectTable(table="prod.orders", key="user_id", record_keys=("order_id", "bill_id"))
PERSON = Subject(
    name="person",
    source="prod.users",
    key="user_id",
    identifiers=(Identifier(column="phone", category="phone"),),
    record_keys=(),
    tables=(ORDERS,),
)
HERS = [Wanted("R", "subj", "4711")]
KEYS = with_table(
    resolve(PERSON, SourceRows({"user_id": ["4711"], "phone": ["+49 111"]}), HERS),
    ORDERS,
    SourceRows({"user_id": ["4711"], "order_id": ["9001"], "bill_id": ["7001"]}),
    HERS,
)
ORDER, BILL = (Trace(origin=f"prod.orders.{name}", access=(), expression="x") for name in ("order_id", "bill_id"))
USER = Trace(origin="user_id", access=(), expression="x")


def numbered(column: ColumnCarriage, subject: Subject = PERSON, *origins: str) -> dict[str, list[str]]:
    known = origins or ("user_id", "prod.orders.order_id", "prod.orders.bill_id")
    derived = {(origin, "x"): derive(KEYS, origin, "x") for origin in known}
    out = dataset("prod.out")
    found = Survey(subject=subject, source=dataset("prod.users"), carriages={}, keys=KEYS, derived=derived)
    columns = {"user": ColumnCarriage(traces=frozenset({USER})), "no": column}
    return numbered_columns(found, Carriage(out, Carries.KEY, terms=(), columns=columns, hops=(), reason=""))


def test_a_column_of_row_keys_alone_is_told_with_all_key_sets_of_rows() -> None:
    sets = [KEYS_OF[name] for name in ("bill_id", "order_id")]
    assert numbered(ColumnCarriage(traces=frozenset({ORDER}))) == {"no": sets}
    assert numbered(ColumnCarriage(traces=frozenset({ORDER, BILL}))) == {"no": sets}


KEYS_OF = {name: derive(KEYS, f"prod.orders.{name}", "x").keys.name for name in ("order_id", "bill_id")}


@pytest.mark.parametrize(
    "column",
    [
        ColumnCarriage(),
        ColumnCarriage(traces=frozenset({USER})),
        ColumnCarriage(traces=frozenset({ORDER, USER})),
        ColumnCarriage(traces=frozenset({ORDER}), lost=frozenset({"user_id"})),
        ColumnCarriage(traces=frozenset({ORDER}), ended=frozenset({"user_id"})),
        ColumnCarriage(traces=frozenset({Trace("prod.orders.order_id", (FieldAccess(name="id"),), "x")})),
        ColumnCarriage(traces=frozenset({ORDER, Trace("prod.orders.bill_id", (FieldAccess(name="id"),), "x")})),
    ],
)
def test_a_column_that_may_hold_a_persons_key_is_searched_for_it(column: ColumnCarriage) -> None:
    assert numbered(column) == {}


def test_without_keys_of_rows_no_column_is_left_out() -> None:
    plain = ColumnCarriage(traces=frozenset({ORDER}))
    assert numbered(plain, PERSON, "user_id") == {}, "no key set means her there, so that the search would find nothing"
    assert numbered(plain, PERSON.model_copy(update={"tables": ()})) == {}
