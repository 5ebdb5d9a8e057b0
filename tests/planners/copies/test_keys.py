"""Key resolution: the right person's identifiers, and a warning where a value is not theirs alone."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import (
    Identifier,
    OtherKey,
    RowFate,
    Subject,
    SubjectTable,
)
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import PlanError
from pii_tracer.review.sealed_person_values import EstateKey
from planners.copies.derived_keys import derive
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve, with_table

CUSTOMER = Subject(
    name="customer",
    source="lake.prod.payments",
    key="user_id",
    identifiers=(Identifier(column="phone", category="phone"),),
    record_keys=("payment_id",),
)
ROWS = SourceRows(
    {
        "user_id": ["7", "7", "8", "9"],
        "phone": ["+91 1", "+91 1", "+91-1", None],
        "payment_id": ["pay_a", "pay_b", "pay_c", "pay_d"],
    }
)


def test_every_identifier_and_row_key_of_the_person_is_resolved() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    assert keys.base["phone"] == (("subj_1", "+91 1"),)
    assert keys.base["payment_id"] == (("subj_1", "pay_a"), ("subj_1", "pay_b"))
    assert keys.others["payment_id"] == {"pay_c", "pay_d"}


def test_a_value_that_an_expression_makes_common_is_counted_as_shared() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    assert derive(keys, "phone", "x").shared == 0
    assert derive(keys, "phone", "regexp_replace(x, '[^0-9]', '')").shared == 1


def test_two_requests_for_the_two_owners_share_nothing_with_others() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7"), Wanted("R2", "subj_2", "8")])
    assert derive(keys, "phone", "regexp_replace(x, '[^0-9]', '')").shared == 0


def test_an_unknown_key_is_an_error_that_does_not_repeat_it() -> None:
    with pytest.raises(PlanError) as caught:
        resolve(CUSTOMER, ROWS, [Wanted("R9", "subj_9", "424242")])
    assert "R9" in str(caught.value)
    assert "424242" not in str(caught.value)


def test_short_numbers_are_weak_and_long_ones_are_not() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    assert derive(keys, "user_id", "x").keys.weak
    assert not derive(keys, "user_id", "sha2(CAST(x AS STRING), 256)").keys.weak


def test_values_do_not_show_in_representations() -> None:
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")])
    shown = repr(keys) + repr(derive(keys, "phone", "x")) + repr(ROWS) + str(derive(keys, "phone", "x").keys)
    assert "+91" not in shown


def test_a_number_with_leading_zeros_is_looked_for_as_the_cast_left_it() -> None:
    """`007` cast to a number and back is `7`: looking for `007` would find nobody."""
    rows = SourceRows({"user_id": ["007", "8"], "phone": ["1", "2"], "payment_id": ["a", "b"]})
    keys = resolve(CUSTOMER, rows, [Wanted("R1", "subj_1", "007")])
    cast = derive(keys, "user_id", "CAST(x AS BIGINT)")
    assert cast.keys.values == (("subj_1", "7"),)
    assert cast.keys.name != derive(keys, "user_id", "x").keys.name


def test_what_a_further_table_knows_of_the_person_is_resolved_there() -> None:
    """An older phone number, and the keys of rows that the source does not have; no rows at all are no mistake."""
    table = SubjectTable(
        table="ops.trips",
        key="rider",
        identifiers=(Identifier(column="phone", category="phone"),),
        record_keys=("trip_id",),
    )
    trips = SourceRows({"rider": ["7", "8", None], "phone": ["+91 0", "+91 2", "+91 3"], "trip_id": ["t1", "t2", "t3"]})
    wanted = [Wanted("R1", "subj_1", "7"), Wanted("R2", "subj_9", "9")]
    keys = with_table(resolve(CUSTOMER, ROWS, wanted), table, trips, wanted)
    assert keys.base["ops.trips.phone"] == (("subj_1", "+91 0"),)
    assert keys.base["ops.trips.trip_id"] == (("subj_1", "t1"),)
    assert keys.others["ops.trips.trip_id"] == {"t2"}, "whose a row without a key is nobody knows"
    assert keys.base["phone"] == (("subj_1", "+91 1"),)
    assert derive(keys, "ops.trips.trip_id", "x").keys.name == "ops.trips.trip_id"


def test_a_table_of_another_key_is_read_by_what_no_one_else_has_there() -> None:
    """Two persons ask, and one of them shares the column with a stranger: their rows there are not told apart."""
    source = SourceRows({"user_id": ["7", "8", "9"], "phone": ["1", "2", "2"], "payment_id": ["a", "b", "c"]})
    wanted = [Wanted("R1", "subj_1", "7"), Wanted("R2", "subj_2", "8")]
    table = SubjectTable(table="ops.calls", key="caller", of="phone", record_keys=("call_id",))
    calls = SourceRows({"caller": ["1", "2", "3"], "call_id": ["c1", "c2", "c3"]})
    keys = with_table(resolve(CUSTOMER, source, wanted), table, calls, wanted)
    assert keys.base["ops.calls.call_id"] == (("subj_1", "c1"),)
    assert keys.others["ops.calls.call_id"] == {"c2", "c3"}


def test_what_others_have_too_is_no_key() -> None:
    """A family's phone: who deleted by it deleted everybody's rows."""
    rows = SourceRows({"user_id": ["7", "7", "8"], "phone": ["1", "2", "2"], "payment_id": ["a", "b", "c"]})
    wanted = [Wanted("R1", "subj_1", "7")]
    made = derive(resolve(CUSTOMER, rows, wanted), "phone", "x")
    assert (made.keys.values, made.shared, made.blind) == ((("subj_1", "1"),), 1, False)
    assert made.keys.name == "phone"
    hashed = derive(resolve(CUSTOMER, rows, wanted), "phone", "sha2(x, 256)")
    assert (len(hashed.keys.values), hashed.shared) == (1, 1)
    cut = derive(resolve(CUSTOMER, rows, wanted), "phone", "substr(x, 1, 0)")
    assert (cut.keys.values, cut.shared) == ((), 0)


def test_a_row_without_a_key_makes_nothing_shared() -> None:
    rows = SourceRows({"user_id": ["7", None, "8"], "phone": ["1", "1", "2"], "payment_id": ["a", "b", "c"]})
    made = derive(resolve(CUSTOMER, rows, [Wanted("R1", "subj_1", "7")]), "phone", "x")
    assert (made.keys.values, made.shared) == ((("subj_1", "1"),), 0)


BEFORE = SourceRows(
    {"user_id": ["7", "8", None], "phone": ["(0) 7", "0-8", "(0) 7"], "payment_id": ["pay_z", "pay_c", None]}
)


def test_former_values_join_unless_another_key_had_them() -> None:
    mine = [Wanted("R1", "subj_1", "7")]
    keys = resolve(CUSTOMER, ROWS, mine, [BEFORE])
    assert keys.base["payment_id"] == (("subj_1", "pay_a"), ("subj_1", "pay_b"), ("subj_1", "pay_z"))
    assert keys.base["phone"] == (("subj_1", "(0) 7"), ("subj_1", "+91 1")), "a row without a key is nobody else's"
    theirs = SourceRows({"user_id": ["9"], "phone": ["(0) 7"], "payment_id": ["pay_d"]})
    keys = resolve(CUSTOMER, ROWS, mine, [BEFORE, theirs])
    assert keys.base["phone"] == (("subj_1", "+91 1"),)
    assert keys.ambiguous == {"user_id": 0, "phone": 1, "payment_id": 0}


def test_a_former_value_of_one_person_that_is_another_persons_now_is_only_that_ones() -> None:
    both = [Wanted("R1", "subj_1", "7"), Wanted("R2", "subj_2", "8")]
    before = SourceRows({"user_id": ["8"], "phone": ["+91 1"], "payment_id": ["pay_c"]})
    keys = resolve(CUSTOMER, ROWS, both, [before])
    assert keys.base["phone"] == (("subj_1", "+91 1"), ("subj_2", "+91-1"))
    assert keys.ambiguous["phone"] == 1


def test_a_former_value_that_an_expression_makes_somebody_elses_stays_out() -> None:
    theirs = SourceRows({"user_id": ["8"], "phone": ["0 7"], "payment_id": ["pay_c"]})
    keys = resolve(CUSTOMER, ROWS, [Wanted("R1", "subj_1", "7")], [BEFORE, theirs])
    made = derive(keys, "phone", "regexp_replace(x, '[^0-9]', '')")
    assert (made.keys.values, made.shared, made.blind) == ((), 1, True), "the other's +91-1 has the same digits"
    assert made.left == {"(0) 7"}
    assert derive(keys, "phone", "x").keys.name == "phone"
    assert derive(keys, "phone", "x").left == frozenset()


def test_former_values_of_a_further_table() -> None:
    trips = SubjectTable(table="ops.trips", key="rider", record_keys=("trip_id",))
    mine = [Wanted("R1", "subj_1", "7")]
    now, before = (SourceRows({"rider": ["7"], "trip_id": [trip]}) for trip in ("t2", "t1"))
    keys = with_table(resolve(CUSTOMER, ROWS, mine), trips, now, mine, [before])
    assert keys.base["ops.trips.trip_id"] == (("subj_1", "t1"), ("subj_1", "t2"))


def test_keys_of_other_people_that_differ_only_in_case_are_known() -> None:
    rows = SourceRows(
        {
            "user_id": ["asha", "Asha", "ASHA", "zoe", None],
            "phone": ["a@x.example", "A@x.example", "b", "c", "d"],
            "payment_id": ["pay_a", "PAY_A", "pay_b", "Pay_A", "pAY_a"],
        }
    )
    keys = resolve(CUSTOMER, rows, [Wanted("R1", "subj_1", "asha")])
    assert derive(keys, "user_id", "x").keys.others == ("ASHA", "Asha")
    assert derive(keys, "payment_id", "x").keys.others == ("PAY_A", "Pay_A"), "a row of nobody may be anybody's"
    assert derive(keys, "phone", "x").keys.others == (), "an address in another case may be the same mailbox"
    assert derive(keys, "user_id", "concat('c-', x)").keys.others == ("c-ASHA", "c-Asha")
    assert derive(keys, "user_id", "upper(x)").keys.others == (), "there they are one: the key is shared"
    both = resolve(CUSTOMER, rows, [Wanted("R1", "subj_1", "asha"), Wanted("R2", "subj_2", "Asha")])
    assert derive(both, "user_id", "x").keys.others == ("ASHA",)
    assert "ASHA" not in repr(keys) + repr(derive(keys, "user_id", "x"))


def test_a_key_whose_case_was_mended_is_the_persons_own() -> None:
    def version(key: str) -> SourceRows:
        return SourceRows({"user_id": [key], "phone": ["1"], "payment_id": [f"{key}1"]})

    keys = resolve(CUSTOMER, version("asha"), [Wanted("R1", "subj_1", "asha")], [version("ASHA")])
    assert derive(keys, "user_id", "x").keys.others == ()
    keys = resolve(CUSTOMER, version("ASHA"), [Wanted("R1", "subj_1", "asha")], [version("asha")])
    assert derive(keys, "user_id", "x").keys.others == ()
    assert derive(keys, "payment_id", "x").keys.others == ()


def test_a_further_tables_row_keys_in_another_case() -> None:
    trips = SubjectTable(table="ops.trips", key="rider", record_keys=("trip_id",))
    now = SourceRows({"rider": ["7", "8"], "trip_id": ["tA", "Ta"]})
    mine = [Wanted("R1", "subj_1", "7")]
    keys = with_table(resolve(CUSTOMER, ROWS, mine), trips, now, mine)
    assert derive(keys, "ops.trips.trip_id", "x").keys.others == ("Ta",)


def test_a_sealed_manifest_keeps_the_others_and_one_of_before_has_none() -> None:
    key = EstateKey(bytes(64))
    known = KeySet(name="uid", origin="uid", weak=False, values=(("s", "asha"),), others=("ASHA",))
    assert key.unseal(key.seal((known,)), "here") == (known,)
    before = {name: value for name, value in known.model_dump().items() if name != "others"}
    assert KeySet.model_validate(before).others == ()


@pytest.mark.parametrize(
    ("payee", "mine", "others"),
    [(RowFate.DELETE, {"t1", "t2"}, {"t3"}), (RowFate.KEEP, {"t1"}, {"t2", "t3"})],
)
def test_a_record_key_is_of_each_person_whose_row_it_is(payee: RowFate, mine: set[str], others: set[str]) -> None:
    """A payment that goes with its payee, too, is found by its id wherever that went."""
    keys = (OtherKey(column="payee", row=payee),)
    told = SubjectTable(table="pay.t", key="payer", row=RowFate.DELETE, other_keys=keys, record_keys=("tid",))
    rows = SourceRows({"payer": ["7", "8", "8"], "payee": ["8", "7", "9"], "tid": ["t1", "t2", "t3"]})
    wanted = [Wanted("R1", "subj_1", "7")]
    made = with_table(resolve(CUSTOMER, ROWS, wanted), told, rows, wanted)
    assert {value for _, value in made.base["pay.t.tid"]} == mine
    assert made.others["pay.t.tid"] == others
