"""Which folders below a root in S3 are told as tables, by keys alone."""

from __future__ import annotations

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.object_tables import tables_below

UUID = "8c7d1f6e-2b4a-4c58-9d10-5e6f7a8b9c0d"


def told(*folders: str, above: str = "lake") -> set[str]:
    return set(tables_below([f"{above}/{folder}/a.parquet" for folder in folders], above))


@pytest.mark.parametrize(
    ("folders", "shown"),
    [
        (("users/u1", "users/u2", "users/all"), {"users/all"}),
        (("u1/mails", "u2/mails", "calls"), {"calls"}),
        (("v2", "calls"), {"v2", "calls"}),
        (
            ("20261130-export", "of_2026-11", "days/2026/11/29", "days/2026/11/30"),
            {"20261130-export", "of_2026-11", "days"},
        ),
        ((UUID, UUID.replace("-", ""), "kim@example.org/a", "no-4417700200", "calls"), {"calls"}),
        (("t", "t/_temporary/0/x", "_old", ".trash/y"), {"t"}),
        (("parts/dt=1", "parts/dt=2"), {"parts"}),
    ],
)
def test_names_that_may_be_keys_and_hidden_folders_are_no_tables(folders: tuple[str, ...], shown: set[str]) -> None:
    assert told(*folders) == {f"lake/{folder}" for folder in shown}


def test_many_folders_of_one_format_are_the_roots() -> None:
    names = [f"{one}{other}" for one in "abcdefgh" for other in "abcdefg"]
    assert len(told(*(f"all/{name}" for name in names[:50]), "b")) == 51
    assert told(*(f"all/{name}" for name in names), "b") == {"lake/b"}


def test_a_hidden_log_is_no_table_and_a_shown_one_is() -> None:
    keys = [f"lake/{folder}/_delta_log/00000000000000000000.json" for folder in ("t", "_old/t", "u1", "u2")]
    assert tables_below(keys, "lake") == {"lake/t": DELTA}
