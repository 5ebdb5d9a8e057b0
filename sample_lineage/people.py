"""Invented customers, merchants and payments of the sample estate: the same for the same `as_of`, nobody real.

Reference numbers begin with 0 or 1, which UIDAI never issues (https://uidai.gov.in, structure of Aadhaar), so that no
invented number can be a living person's.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

PERSON = 8841302
"""The customer of request REQ-2026-0117. One merchant has the same number and must not lose a row."""
SECOND_PERSON = 5527719
"""The customer of request REQ-2026-0124."""
FORMER_CUSTOMER = 3300457
"""A customer who was erased from the payments before, so that delete files and deletion vectors exist."""
MERCHANT_NAMESAKE = 8841302

DAYS = 120
BATCHES = 4
_SEED = 20261117
_USERS = 200
_PAYMENTS = 2000
_PERSON_PAYMENTS = 12
_SECOND_PAYMENTS = 7
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_CITIES = ("Bengaluru", "Mysuru", "Mangaluru", "Hubballi", "Chennai", "Hyderabad", "Pune")
_CATEGORIES = ("grocery", "fuel", "travel", "pharmacy", "electronics", "food")
_STATUSES = ("captured",) * 7 + ("refunded", "failed", "disputed")


@dataclass(frozen=True)
class User:
    """A customer. No two share an identifier."""

    user_id: int
    pan: str
    phone: str
    aadhaar_ref: str
    city: str


@dataclass(frozen=True)
class Merchant:
    """A shop that is paid."""

    merchant_id: int
    name: str
    category: str
    city: str


@dataclass(frozen=True)
class Payment:
    """One row of `lake.prod.payments`; `paid_at` carries a time zone."""

    payment_id: str
    user_id: int
    pan: str
    phone: str
    aadhaar_ref: str
    city: str
    merchant_id: int
    amount: Decimal
    status: str
    paid_at: datetime


@dataclass(frozen=True)
class Vendor:
    """A contact of the company's own suppliers: looks like a customer's data, and is nobody's who asks for erasure."""

    vendor: str
    pan: str
    phone: str
    email: str


@dataclass(frozen=True)
class Population:
    """Everybody. `payments` are in order of payment; `batches` splits them as they came in."""

    users: tuple[User, ...]
    merchants: tuple[Merchant, ...]
    payments: tuple[Payment, ...]
    vendors: tuple[Vendor, ...]
    audit: tuple[Payment, ...]

    def batches(self) -> list[tuple[Payment, ...]]:
        """The payments in `BATCHES` parts of equal length, in the order in which they were ingested."""
        size = -(-len(self.payments) // BATCHES)
        return [self.payments[start : start + size] for start in range(0, len(self.payments), size)]

    def user(self, user_id: int) -> User:
        """The customer of this number. Raises `KeyError` when there is none."""
        return {user.user_id: user for user in self.users}[user_id]


class _Inventor:
    """Draws values that are unique and hold none of the two persons' numbers by chance."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (invented data, no secret)
        self._drawn: set[str] = set()

    def _digits(self, count: int) -> str:
        return "".join(self.random.choices("0123456789", k=count))

    def _unique(self, value: str) -> bool:
        plain = value.replace(" ", "")
        if value in self._drawn or any(str(number) in plain for number in (PERSON, SECOND_PERSON)):
            return False
        self._drawn.add(value)
        return True

    def number(self) -> int:
        while True:
            value = str(self.random.randint(2, 7)) + self._digits(6)
            if self._unique(value):
                return int(value)

    def pan(self) -> str:
        while True:
            first, last = self.random.choices(_LETTERS, k=3), self.random.choices(_LETTERS, k=2)
            value = f"{''.join(first)}P{last[0]}{self._digits(4)}{last[1]}"
            if self._unique(value):
                return value

    def phone(self) -> str:
        while True:
            digits = self.random.choice("6789") + self._digits(9)
            if self._unique(f"+91 {digits[:5]} {digits[5:]}"):
                return f"+91 {digits[:5]} {digits[5:]}"

    def reference(self) -> str:
        while True:
            value = self.random.choice("01") + self._digits(11)
            if self._unique(value):
                return value

    def payment_id(self) -> str:
        while True:
            value = "pay_" + "".join(self.random.choices(_BASE32, k=10))
            if self._unique(value):
                return value


def populate(as_of: datetime) -> Population:
    """The whole population, with payments on the `DAYS` days before `as_of` (which carries a time zone)."""
    invent = _Inventor(_SEED)
    numbers = [PERSON, SECOND_PERSON, FORMER_CUSTOMER] + [invent.number() for _ in range(_USERS - 3)]
    users = tuple(
        User(number, invent.pan(), invent.phone(), invent.reference(), invent.random.choice(_CITIES))
        for number in numbers
    )
    merchants = _merchants(invent)
    vendors = tuple(
        Vendor(f"Vendor {n}", invent.pan(), invent.phone(), f"accounts{n}@vendor{n}.example") for n in range(1, 31)
    )
    start = as_of.replace(second=0, microsecond=0) - timedelta(days=DAYS)
    payments = _payments(invent, users, merchants, start)
    audit = tuple(
        _payment(invent, user, merchants[1], start + timedelta(days=DAYS - 1, hours=hour), "refunded")
        for hour, user in enumerate((users[0], users[3], users[4]))
    )
    return Population(users, merchants, payments, vendors, audit)


def _merchants(invent: _Inventor) -> tuple[Merchant, ...]:
    def merchant(number: int, index: int) -> Merchant:
        return Merchant(number, f"Shop {index}", invent.random.choice(_CATEGORIES), invent.random.choice(_CITIES))

    namesake = merchant(MERCHANT_NAMESAKE, 0)
    return (namesake, *(merchant(invent.number(), index) for index in range(1, 25)))


def _payment(invent: _Inventor, user: User, merchant: Merchant, paid_at: datetime, status: str) -> Payment:
    return Payment(
        payment_id=invent.payment_id(),
        user_id=user.user_id,
        pan=user.pan,
        phone=user.phone,
        aadhaar_ref=user.aadhaar_ref,
        city=user.city,
        merchant_id=merchant.merchant_id,
        # at most 9,999.99: no amount can be read as somebody's number
        amount=Decimal(invent.random.randint(5000, 999999)) / 100,
        status=status,
        paid_at=paid_at,
    )


def _payments(
    invent: _Inventor, users: tuple[User, ...], merchants: tuple[Merchant, ...], start: datetime
) -> tuple[Payment, ...]:
    def evenly(user: User, count: int) -> list[Payment]:
        """Payments spread over all the days, so that every batch and every weekly archive holds some."""
        made = []
        for index in range(count):
            paid_at = start + timedelta(days=1 + index * (DAYS - 2) / count, minutes=invent.random.randint(0, 600))
            # the third goes to the merchant of the same number; the fourth and the last but one are disputed
            shop = merchants[0] if index == 2 else invent.random.choice(merchants[1:])
            status = "disputed" if index in (3, count - 2) else "captured"
            made.append(_payment(invent, user, shop, paid_at.replace(second=0, microsecond=0), status))
        return made

    payments = evenly(users[0], _PERSON_PAYMENTS) + evenly(users[1], _SECOND_PAYMENTS)
    while len(payments) < _PAYMENTS:
        user = invent.random.choice(users[2:])
        # the former customer left half-way and never comes back
        days = DAYS // 2 if user.user_id == FORMER_CUSTOMER else DAYS
        paid_at = start + timedelta(minutes=invent.random.randint(0, days * 24 * 60 - 180))
        status = invent.random.choice(_STATUSES)
        payments.append(_payment(invent, user, invent.random.choice(merchants), paid_at, status))
    return tuple(sorted(payments, key=lambda payment: (payment.paid_at, payment.payment_id)))
