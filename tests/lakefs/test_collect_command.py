"""The collector as a command that the estate file declares: run on its day, once nothing keeps the objects."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pii_tracer.model.errors import RunError
from tests.lakefs.running import Run, prepared
from tests.lakefs.shop import PERSON, Shop

IMMEDIATE = ("--retention", "immediate", "--reason", "test")
REWRITE, SET, AWAIT = "lakefs_rewrite", "lakefs_set_rules", "lakefs_await_collection"


def command(shop: Shop, then: str = "0") -> list[str]:
    """A program that lets the server collect, as a job of the platform would."""
    code = f"import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=120).read(); sys.exit({then})"
    return [sys.executable, "-c", code, shop.lakefs.url + "/collector/{repository}"]


def begun(shop: Shop, *words: str, **more: Any) -> Run:
    run = prepared(shop, *words, **more)
    run.act(REWRITE)
    run.act(SET)
    return run


def test_the_command_runs_and_the_objects_are_looked_for(shop: Shop) -> None:
    run = begun(shop, *IMMEDIATE, collect=command(shop))
    step = run.steps[AWAIT]
    assert step.irreversible
    assert step.parameters["command"][-1].endswith("/collector/shop")
    run.at(0.1)
    done = run.act(AWAIT)
    assert done.waiting_until is None
    assert (done.facts["collected"], done.facts["files_removed"]) == (True, 4)
    assert shop.addresses(PERSON) == set()


def test_it_does_not_run_before_its_day_or_while_a_commit_keeps_them(shop: Shop) -> None:
    run = begun(shop, collect=command(shop))
    assert "collected" not in run.act(AWAIT).facts
    run.at(40)
    shop.lakefs.branch(shop.repo, "back", shop.commits["second"])
    with pytest.raises(RunError, match="active commit"):
        run.act(AWAIT)
    assert not [call for call in shop.lakefs.calls if call.path.startswith("/collector")]


def test_a_command_that_fails_or_does_nothing_is_no_success(shop: Shop) -> None:
    run = begun(shop, *IMMEDIATE, collect=command(shop, "3"))
    run.at(0.1)
    with pytest.raises(RunError, match="exit code 3"):
        run.act(AWAIT)
    step = run.steps[AWAIT]
    for words, told in (([sys.executable, "-c", ""], None), (["/there/is/none"], "FileNotFoundError")):
        shop.lakefs.put(shop.repo, "free", "x.csv", b"x")
        run.steps[AWAIT] = step.model_copy(update={"parameters": {**step.parameters, "command": words}})
        if told is None:
            assert run.act(AWAIT).facts["left"] == 0  # the failed one had collected
            (shop.root / step.parameters["objects"][0]["address"].removeprefix("local://")).write_bytes(b"back")
            assert run.act(AWAIT).facts["left"] == 1
        else:
            with pytest.raises(RunError, match=told):
                run.act(AWAIT)
