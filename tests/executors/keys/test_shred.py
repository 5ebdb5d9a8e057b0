"""The executor of destroyed keys on real tables: it waits, looks into the key table, and tries to read. No Spark."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from executors.context import ExecutionContext
from executors.keys.envelope.key_destruction_check import ShredExecutor
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    CopyKind,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Progress
from tests.e2e import shredded
from tests.review import plans

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
TERM = MatchTerm(column="caller", key_set="caller", type="string")


class Keyring:
    def key_set(self, name: str) -> KeySet:
        return KeySet(name=name, origin="tel.users.caller", weak=False, values=(("subj_1", shredded.PERSON),))


class World:
    """The estate of `tests.e2e.shredded`, and an executor whose clock and journal are told."""

    def __init__(self, base: Path) -> None:
        shredded.build(base)
        self.base, self.now = base, NOW
        self.verified: dict[str, datetime] = {"c-tel.keys/05": NOW - timedelta(seconds=1)}
        estate = load_estate(base / "pii-tracer.yaml")
        ctx = ExecutionContext(estate, base, Keyring(), lambda: self.now, self.verified.get)
        self.executor = ShredExecutor(ctx)

    def destroy(self) -> None:
        DeltaTable(str(self.base / "tables" / "keys")).delete(f"caller = '{shredded.PERSON}'")

    def copy(self, name: str, match: Match | None = None) -> Copy:
        place = {"table": f"tel.{name}", "location": str(self.base / "tables" / name)}
        return plans.copy(f"c-tel.{name}", kind=CopyKind.KEY, format=DELTA, match=match, **place)

    def step(self, action: Action, **parameters: Any) -> Step:
        parameters = {"keys": "callers", **parameters}
        after = ["c-tel.keys/05"]
        return plans.step("c-tel.keys/06", "c-tel.keys", after, action=action, executor="shred", parameters=parameters)

    @property
    def waiting(self) -> tuple[Step, Copy]:
        return self.step(Action.KEY_AWAIT_CACHES, cache_seconds=60), self.copy("keys", Match(terms=(TERM,)))

    @property
    def reading(self) -> tuple[Step, Copy]:
        calls = str(self.base / "tables" / "calls")
        step = self.step(
            Action.KEY_TRY_TO_READ, encrypted="tel.calls", location=calls, key_terms=[["caller", "caller"]]
        )
        return step, self.copy("calls")


@pytest.fixture
def shredding(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_destroyed_key_is_not_over_before_the_longest_cache_is(shredding: World) -> None:
    step, copy = shredding.waiting
    shredding.executor.check(step, copy)
    remembered = shredded.opened_keys(shredding.base)
    shredding.destroy()
    assert shredded.PHONE not in shredded.numbers(shredding.base)
    assert shredded.PHONE in shredded.numbers(shredding.base, keys=remembered), "who opened the key reads on"
    assert shredding.executor.run(step, copy).waiting_until == NOW + timedelta(seconds=59)
    assert shredding.executor.verify(step, copy).findings == ("a reader may still have the key in its cache",)
    shredding.now += timedelta(seconds=59)
    assert shredding.executor.run(step, copy).waiting_until is None
    assert shredding.executor.verify(step, copy).ok
    assert shredding.executor.probe(step, copy) is Progress.DONE


def test_a_key_that_came_back_or_never_went_is_seen(shredding: World) -> None:
    step, copy = shredding.waiting
    shredding.now += timedelta(hours=1)
    assert shredding.executor.verify(step, copy).findings == ("the key table still has 1 key of the person",)
    assert shredding.executor.probe(step, copy) is Progress.NOT_STARTED


def test_nobody_knows_when_the_wait_began_without_the_journal(shredding: World) -> None:
    shredding.verified.clear()
    with pytest.raises(RunError, match="journal does not say"):
        shredding.executor.run(*shredding.waiting)


def test_reading_is_tried_and_everybody_else_can(shredding: World) -> None:
    step, copy = shredding.reading
    shredding.executor.check(step, copy)
    assert shredding.executor.run(step, copy).facts == {"rows": 6, "rows_without_key": 0, "rows_opened": 6}
    assert shredding.executor.verify(step, copy).findings == (
        "the key table has 1 key of the person: cells can be decrypted",
    )
    shredding.destroy()
    check = shredding.executor.verify(step, copy)
    assert check.ok
    assert check.facts == {"rows": 6, "rows_without_key": 2, "rows_opened": 4}


def test_cells_of_other_people_that_do_not_open_stop_the_step(shredding: World) -> None:
    shredding.destroy()
    path = shredding.base / "tables" / "calls" / "part-0.parquet"
    calls = pq.read_table(path)
    cells = calls.column("number").to_pylist()
    cells[-1] = cells[-1][:-1] + bytes([cells[-1][-1] ^ 1])
    pq.write_table(calls.set_column(1, "number", pa.array(cells, pa.binary())), path)
    check = shredding.executor.verify(*shredding.reading)
    assert not check.ok
    assert "cells of other people cannot be decrypted" in check.findings[0]


def test_without_the_wrapping_key_nothing_is_claimed(shredding: World) -> None:
    shredding.destroy()
    (shredding.base / "kek").unlink()
    assert not shredding.executor.verify(*shredding.reading).ok


def test_what_the_estate_file_does_not_declare_any_more_is_refused(shredding: World) -> None:
    for parameters in ({"keys": "others"}, {"encrypted": "tel.other"}):
        step = shredding.step(Action.KEY_TRY_TO_READ, **{"encrypted": "tel.calls", **parameters})
        with pytest.raises(RunError, match="does not declare"):
            shredding.executor.check(step, None)
