"""Persons whom the source has no more, in another case, or under another writing of their number."""

from __future__ import annotations

import pytest

from pii_tracer.config.subjects import Identifier, Subject, SubjectTable
from pii_tracer.model.errors import PersonsUnknown
from pii_tracer.model.keys_as_text import joined
from planners.copies.match_key_resolution import Keys, SourceRows, Wanted, resolve, with_table
from planners.locate.key_uniqueness import SameKey

PERSON = Subject(
    name="person",
    source="prod.users",
    key="uid",
    identifiers=(Identifier(column="phone", category="phone"),),
)
ROWS = SourceRows({"uid": ["asha", "zoe", None], "phone": ["1", "2", "3"]})


def test_persons_whom_no_row_has_are_refused_together_and_none_is_named_by_the_key() -> None:
    wanted = [Wanted("R3", "s3", "bo"), Wanted("R1", "s1", "asha"), Wanted("R2", "s2", "li")]
    with pytest.raises(PersonsUnknown) as caught:
        resolve(PERSON, ROWS, wanted)
    error = caught.value
    assert error.what == "prod.users does not contain the person of request R3: no row has this uid"
    assert (error.where, error.requests) == ("request R3", ("R2", "R3"))
    assert error.todo.startswith("check the key in the request. If an earlier run erased the source")


def test_a_key_in_another_case_is_told_as_such() -> None:
    with pytest.raises(PersonsUnknown) as caught:
        resolve(PERSON, ROWS, [Wanted("R1", "s1", "ASHA")])
    error = caught.value
    assert error.what == (
        "prod.users does not contain the person of request R1: no row has this uid. A row has the key in a different"
        " case (capital or small letters)"
    )
    assert error.todo.startswith(
        "if that row is the same person's, write the key in the request as prod.users has it. Otherwise"
    )
    assert "check the key in the request" in error.todo


def test_where_the_source_was_erased_each_person_is_known_by_the_key_that_was_asked_for() -> None:
    before = SourceRows({"uid": ["bo"], "phone": ["9"]})
    wanted = [Wanted("R1", "s1", "bo"), Wanted("R2", "s2", "li"), Wanted("R3", "s3", "ASHA")]
    keys = resolve(PERSON, ROWS, wanted, [before], source_erased=True)
    assert keys.base["uid"] == (("s1", "bo"), ("s2", "li"), ("s3", "ASHA"))
    assert keys.base["phone"] == (("s1", "9"),)
    assert (keys.key_only, keys.recased) == ({"R2", "R3"}, {"R3"})
    there = resolve(PERSON, ROWS, [Wanted("R1", "s1", "asha")], source_erased=True)
    assert (there.key_only, there.recased) == (frozenset(), frozenset())


def test_values_that_name_nobody_are_everybody_elses_too() -> None:
    rows = SourceRows({"uid": ["unknown", "zoe"], "phone": ["unknown", "2"]})
    keys = resolve(PERSON, rows, [Wanted("R1", "s1", "unknown")])
    assert keys.others["phone"] == {"unknown", "2"}
    assert keys.others["uid"] == {"zoe"}, "a key names who has it, whatever it says"


def same(*texts: str, person: Subject = PERSON) -> Keys:
    rows = SourceRows({person.key: texts, "phone": [str(n) for n in range(len(texts))]})
    return resolve(person, rows, [Wanted("R1", "s1", texts[0])])


def test_other_writings_of_a_number_are_counted_beside_the_rows_of_the_key() -> None:
    assert same("47", "48").same_key == {}
    assert same("47", "47.0", "47.00", "47.5").same_key == {"R1": SameKey(1, 1, 1, (), other_texts=2)}
    assert same("47.0", "47").same_key["R1"] == SameKey(1, 1, 1, (), other_texts=1)
    several = same("47", "47", "47.0").same_key["R1"]
    assert (several.rows, several.persons, several.columns, several.other_texts) == (2, 2, ("phone",), 1)


def test_a_key_of_several_columns_is_another_writing_where_a_part_of_it_is() -> None:
    person = Subject.model_validate(
        {
            "name": "person",
            "source": "prod.users",
            "key": ["tenant", "uid"],
            "identifiers": [{"column": "phone", "category": "phone"}],
        }
    )
    keys = [joined(parts) or "" for parts in (("4", "17"), ("4.0", "17"), ("4", "17.00"), ("4.01", "7"), ("5", "17"))]
    assert same(*keys, person=person).same_key["R1"].other_texts == 2
    assert same(keys[1], keys[0], keys[4], person=person).same_key["R1"].other_texts == 1
    assert same(keys[0], keys[4], person=person).same_key == {}


def test_whose_former_values_are_doubtful_is_known_over_all_tables() -> None:
    mine = [Wanted("R1", "s1", "asha"), Wanted("R2", "s2", "zoe")]
    before = [SourceRows({"uid": [uid], "phone": ["7"]}) for uid in ("asha", "else")]
    keys = resolve(PERSON, ROWS, mine, before)
    assert (keys.ambiguous["phone"], keys.ambiguous_of) == (1, {"s1"})
    orders = SubjectTable(table="prod.orders", key="uid", record_keys=("no",))
    now = SourceRows({"uid": ["asha", "zoe"], "no": ["a", "b"]})
    then = [SourceRows({"uid": [uid], "no": ["c"]}) for uid in ("zoe", "else")]
    assert with_table(keys, orders, now, mine, then).ambiguous_of == {"s1", "s2"}
    assert with_table(keys, orders, now, mine).ambiguous_of == {"s1"}


def test_columns_of_different_length_are_no_rows() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        SourceRows({"uid": ["1", "2"], "phone": ["1"]})
    assert repr(ROWS) == "SourceRows(uid, phone)"
