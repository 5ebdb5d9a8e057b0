"""Where former schemas have the columns of now."""

from __future__ import annotations

from pii_tracer.lake.rows.historical_columns import Field, past_columns
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.datasets import FieldAccess

NOW = (Field("cust", "1"), Field("mail", "2"))


def names(then: tuple[Field, ...], now: tuple[Field, ...] = NOW) -> dict[str, list[str]]:
    spots = {"cust": Spot("cust"), "mail": Spot("mail")}
    return {n: [p.spot.column for p in at] for n, at in past_columns(spots, now, then, "cust").items()}


def test_a_renamed_column_is_found_by_its_id() -> None:
    assert names((Field("who", "1"), Field("e_mail", "2"))) == {"cust": ["who"], "mail": ["e_mail"]}


def test_a_column_that_had_the_name_and_is_no_more_counts_too() -> None:
    assert names((Field("cust", "1"), Field("Mail", "7"))) == {"cust": ["cust"], "mail": ["Mail"]}
    both = (Field("cust", "1"), Field("mail", "7"), Field("e_mail", "2"))
    assert names(both) == {"cust": ["cust"], "mail": ["e_mail", "mail"]}


def test_a_column_that_is_another_one_now_is_not_taken_for_it() -> None:
    """Names that were swapped: what was called `mail` is the referrer's, today as then."""
    now = (*NOW, Field("referrer", "3"))
    then = (Field("cust", "1"), Field("mail", "3"))
    assert names(then, now) == {"cust": ["cust"], "mail": []}


def test_another_column_is_not_the_key_unless_no_column_is_left() -> None:
    assert names((Field("cust", "8"), Field("mail", "2"))) == {"cust": [], "mail": ["mail"]}
    assert names((Field("cust", "8"), Field("mail", "9"))) == {"cust": ["cust"], "mail": ["mail"]}


def test_fields_of_structs() -> None:
    spot = Spot("payer", (FieldAccess(name="mail"),))
    now = (Field("payer", "1", (Field("mail", "5"), Field("note", "4"))),)
    then = (Field("buyer", "1", (Field("mail", "4"), Field("e_mail", "5"))),)
    (past,) = past_columns({"m": spot}, now, then, "cust")["m"]
    assert (past.spot.names, past.ids) == (("buyer", "e_mail"), ("1", "5"))
