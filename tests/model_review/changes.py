"""Changes of the invented project, each applied alone, with the verdict that it has to get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Edit = Callable[[Path], None]


@dataclass(frozen=True)
class Planted:
    """A change. kind: of its only denying finding; None where nothing may be found. where: its file and line."""

    name: str
    edit: Edit
    kind: str | None = None
    where: tuple[str, int] | None = None
    severity: str = "error"


def put(path: str, text: str) -> Edit:
    def edit(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")

    return edit


def replaced(path: str, old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        text = (root / path).read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}"
        (root / path).write_text(text.replace(old, new), encoding="utf-8")

    return edit


def moved(old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)

    return edit


def both(*edits: Edit) -> Edit:
    def edit(root: Path) -> None:
        for one in edits:
            one(root)

    return edit


STAGED = "models/staging/stg_customers_0.sql"
DIM = "models/marts/dim_customers_0.sql"
ORDERS = "models/marts/fct_orders_0.sql"
MAILING = "models/marts/mailing_0.sql"
DAILY = "models/marts/daily_0.sql"
NEW = "models/marts/new.sql"
CUSTOMERS = "{{ ref('stg_customers_0') }}"

HARMFUL = (
    Planted(
        "a new table of e-mail addresses without the key",
        put(NEW, f"select\n    email,\n    plan\nfrom {CUSTOMERS}\n"), "copy-without-key", (NEW, 2),
    ),
    Planted(
        "a hash with a random salt",
        put(NEW, f"select\n  plan,\n  sha2(concat(email, uuid()), 256) as token\nfrom {CUSTOMERS}\n"),
        "mask-not-recomputable", (NEW, 3),
    ),
    Planted(
        "a phone number that is cut",
        put(NEW, f"select left(phone, 4) as area, city from {CUSTOMERS}\n"), "mask-not-recomputable", (NEW, 1),
    ),
    Planted(
        "the key goes through a function of a user",
        replaced(MAILING, "select customer_id,", "select vault_token(customer_id) as customer_id,"),
        "mask-not-recomputable", (MAILING, 1),
    ),
    Planted(
        "a table loses its key",
        replaced(DIM, "    c.customer_id,\n    c.email", "    c.email"), "key-dropped", (DIM, 1),
    ),
    Planted(
        "addresses are collected in a table that only grows",
        replaced(DAILY, "sum(amount_cents) as cents, count(*) as orders\nfrom {{ ref('stg_orders_0') }}",
                 f"collect_set(c.email) as emails\nfrom {{{{ ref('stg_orders_0') }}}} join {CUSTOMERS} c using (customer_id)"),
        "identifiers-in-aggregate", (DAILY, 2),
    ),
    Planted(
        "a template that asks the warehouse",
        replaced(DIM, "c.email,", "{% for c in adapter.get_columns_in_relation(ref('stg_customers_0')) %}{{ c }},{% endfor %}"),
        "lineage-lost", (DIM, 3),
    ),
    Planted(
        "a macro takes a random value, and the model that calls it loses its hash",
        both(
            replaced("macros/shop.sql", "concat('shop', lower({{ column }}))", "concat(uuid(), {{ column }})"),
            replaced(MAILING, "select customer_id, ", "select "),
        ),
        "mask-not-recomputable", (MAILING, 1),
    ),
    Planted("a CSV file of customers", put("seeds/vip.csv", "email,level\na@example.org,1\n"), "personal-seed", ("seeds/vip.csv", 1)),
    Planted(
        "a further identifier in a table with the key",
        replaced(DIM, "c.email,\n    c.city,\n    count", "c.email,\n    c.city,\n    max(c.phone) as phone,\n    count"),
        "identifier-added", (DIM, 5), "warning",
    ),
)  # fmt: skip

HARMLESS = (
    Planted("a comment", replaced(DIM, "select\n", "-- one row for each customer\nselect\n")),
    Planted("other white space and capitals", replaced(STAGED, "select\n    customer_id,\n    email", "SELECT customer_id,\n  email")),
    Planted(
        "a common table expression has another name",
        both(replaced(STAGED, "with source as", "with rows_of_shop as"), replaced(STAGED, "from source\n", "from rows_of_shop\n")),
    ),
    Planted("a column that tells of nobody", replaced(ORDERS, "p.title, o.ordered_at", "p.title, p.price, o.ordered_at")),
    Planted("columns in another order", replaced(MAILING, "select customer_id, {{ contact_key('email') }} as contact_key, plan",
                                                 "select plan, {{ contact_key('email') }} as contact_key, customer_id")),
    Planted("a test", put("tests/no_negative.sql", "select email from {{ ref('dim_customers_0') }} where orders < 0\n")),
    Planted("a filter", replaced(DIM, "group by", "where c.city <> ''\ngroup by")),
    Planted("a model in another folder", moved(DIM, "models/marts/customers/dim_customers_0.sql")),
    Planted("a new count by city", put(NEW, f"select city, count(*) as customers from {CUSTOMERS} group by city\n")),
    Planted("a new table with the key", put(NEW, f"select customer_id, plan from {CUSTOMERS}\n")),
)  # fmt: skip
