"""Which whole cells executors leave to other people."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from executors.context import ExecutionContext
from pii_tracer.model.datasets import KeySet, Match, MatchTerm

UID = KeySet(
    name="uid",
    origin="uid",
    weak=False,
    values=(("s", "asha"),),
    others=frozenset({"asha-rao", "asha@x.example"}),
)
MAIL = KeySet(name="mail", origin="mail", weak=False, values=(("s", "asha@x.example"),))


def test_a_key_of_somebody_else_that_is_her_address_is_searched_as_hers() -> None:
    keyring: Any = SimpleNamespace(key_set={"uid": UID, "mail": MAIL}.__getitem__)
    estate: Any = SimpleNamespace()
    context = ExecutionContext(estate, Path(), keyring, lambda: datetime.now(timezone.utc), everything=(UID, MAIL))
    terms = tuple(MatchTerm(column="who", key_set=name, type="string") for name in ("uid", "mail"))
    copy: Any = SimpleNamespace(dataset="t", location="/t", match=Match(terms=terms))
    assert context.nobodys(copy) == {"who": frozenset({"asha-rao"})}
