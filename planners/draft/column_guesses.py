"""What a column may hold, by its name, its type and a sample of its values: guesses, which their owner corrects.

Names are taken apart where they change case or have a mark: `customerEmail` and `CUSTOMER_EMAIL` are one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

SHARE = 0.8
"""Of the values that are there, this part has to look like a category."""
NAMES_PERSONS = 2
"""The strength of a key whose name names persons."""
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_PHRASES: tuple[tuple[str, str], ...] = (
    ("email", r"e ?mail|mail address|mail"),
    ("phone", r"phone|phone (no|number)|mobile|mobile (no|number)|msisdn|telephone|tel|cell phone"),
    ("national_id", r"aadhaar( (no|number|ref))?|aadhar|pan( (no|number))?|voter id"),
    ("national_id", r"ssn|social security( number)?|nino|cpf|nric|curp|dni"),
    ("national_id", r"passport|passport (no|number)|tax id|tax number|national id|identity (no|number)"),
    ("national_id", r"(driver|driving|drivers) licen[cs]e( number)?"),
    ("payment_account", r"iban|card number|card no|account number|account no|vpa|upi id"),
    ("device_id", r"advertising id|idfa|gaid|maid|device id|cookie id"),
)  # fmt: skip
_CATEGORIES = tuple((category, re.compile(rf"(.* )?({phrase})")) for category, phrase in _PHRASES)
_NOT_A_VALUE = re.compile(
    r".* (verified|consent|opt in|opt out|status|type|count|at|date|domain|template|subject|valid)"
)
PERSONS = (
    "user", "customer", "client", "member", "person", "patient", "account", "rider", "buyer", "subscriber", "employee",
    "guest", "contact", "student", "driver", "holder", "payer", "citizen", "visitor", "profile", "party", "consumer",
    "cust", "acct", "usr", "passenger", "tenant", "borrower", "insured", "applicant", "candidate", "donor", "player",
)  # fmt: skip
_SOMEBODY_ELSE = frozenset(
    {
        *(
            "spouse",
            "partner",
            "husband",
            "wife",
            "parent",
            "mother",
            "father",
            "child",
            "guardian",
            "sibling",
            "family",
        ),
        *(
            "referrer",
            "referral",
            "referred",
            "inviter",
            "invited",
            "friend",
            "household",
            "emergency",
            "kin",
            "nominee",
        ),
        *("guarantor", "beneficiary", "manager", "supervisor", "agent", "seller", "sender", "recipient", "company"),
    }
)
"""Words of names of columns that hold what is another one's than the row's person."""
_KEY = re.compile(rf"(.* )?(({'|'.join(PERSONS)}) (id|no|number|nr|key|uuid|guid|ref|code|num)|uid|(party|person) id)")
_RECORD_KEY = re.compile(r"(.* )?(id|no|number|nr|key|uuid|guid|ref|num)")
_BARE_KEY = re.compile(r"id|uuid|guid|key|no|number")
_TEXT = re.compile(r"string|char|varchar|utf8|large_utf8|text", re.IGNORECASE)
_NUMBER = re.compile(r"(tiny|small|big)?int(eger)?|long|short|u?int\d+|decimal\(\d+, ?0\)", re.IGNORECASE)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
_PHONE = re.compile(r"\+?\d[\d ().-]{7,18}\d")
_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(
    r"(?<!\d)(19|20)\d\d([-_./]?(0[1-9]|1[0-2])([-_./]?(0[1-9]|[12]\d|3[01])"
    r"([T_ -]([01]\d|2[0-3])([-_:.]?[0-5]\d){0,2}Z?)?)?)?(?!\d)"
)
_LONG_NUMBER = re.compile(r"\d{6}")


@dataclass(frozen=True)
class Guess:
    """A category, and what tells it: `name`, `values`, or both."""

    category: str
    by: str


def words_of(name: str) -> str:
    """A name as small words with blanks between: `customer email` of `customerEmail`."""
    return " ".join(found.lower() for found in _WORDS.findall(name))


def category_of(name: str, kind: str, sample: Sequence[object] = ()) -> Guess | None:
    """The category of an identifying column, or None. kind: its type in Spark SQL. sample: values, NULL among them.

    A name that says otherwise of the value (`email_verified`) and a type that can hold none are none.
    """
    if not (_TEXT.match(kind) or _NUMBER.fullmatch(kind)):
        return None
    words = words_of(name)
    told = next((c for c, pattern in _CATEGORIES if pattern.fullmatch(words)), None)
    if _NOT_A_VALUE.fullmatch(words):
        told = None
    seen = _category_of_values([str(value) for value in sample if value is not None and value != ""])
    if told is None and seen is None:
        return None
    if told == seen:
        return Guess(str(told), "name and values")
    return Guess(told, "name") if told else Guess(str(seen), "values")


def may_tell_of_person(folder: str) -> bool:
    """Whether a mail, a phone, a UUID or a long number stands in a folder's name. Dates and years are none."""
    name = _DATE.sub("|", unquote(folder))
    return any(pattern.search(name) for pattern in (_EMAIL, _PHONE, _UUID, _LONG_NUMBER))


def _category_of_values(values: Sequence[str]) -> str | None:
    """Numbers alone are no phones: nearly every number looks like one."""
    if _most(values, _EMAIL):
        return "email"
    if _most(values, _PHONE) and any(value.startswith("+") or " " in value for value in values):
        return "phone"
    return None


def _most(values: Sequence[str], pattern: re.Pattern[str]) -> bool:
    return bool(values) and sum(1 for value in values if pattern.fullmatch(value)) >= SHARE * len(values)


def key_strength(name: str, kind: str, sample: Sequence[object] = ()) -> int:
    """How much a column looks like a key of persons: 0 not at all; 1 a bare `id`, or UUIDs; 2 it names persons."""
    if not (_TEXT.match(kind) or _NUMBER.fullmatch(kind)):
        return 0
    words = words_of(name)
    if _KEY.fullmatch(words):
        return NAMES_PERSONS
    return 1 if _BARE_KEY.fullmatch(words) or has_uuids(sample) else 0


def has_uuids(sample: Sequence[object]) -> bool:
    """Whether values are UUIDs."""
    return _most([str(value) for value in sample if value is not None], _UUID)


def may_be_record_key(name: str, kind: str) -> bool:
    """Whether a column is called as the number of a record is: `payment_id`, `orderNo`, `id`."""
    return bool((_TEXT.match(kind) or _NUMBER.fullmatch(kind)) and _RECORD_KEY.fullmatch(words_of(name)))


def kind_of_person(key: str, table: str) -> str:
    """What a subject is called: `customer` of the key `customer_id`; else of the table's last name."""
    return next((kind for name in (key, table.rsplit(".", 1)[-1]) for kind in _kinds_in(name)), "person")


def names_somebody_else(name: str) -> bool:
    """Whether a column is called as one with values of another person than the row's: `spouse_email`."""
    return not _SOMEBODY_ELSE.isdisjoint(words_of(name).split())


def names_another_kind(name: str, kind: str) -> bool:
    """Whether a column's name has another kind of person than `kind`: `driver_id` in a table of customers."""
    return any(found != kind for found in _kinds_in(name))


def _kinds_in(name: str) -> list[str]:
    found = [person for word in words_of(name).split() for person in PERSONS if word in (person, f"{person}s")]
    return [{"cust": "customer", "acct": "account", "usr": "user"}.get(person, person) for person in found]
