"""What a run says before it counts everybody else's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.verification import Verification
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.datasets import KeySet, Match, MatchTerm
from tests.review.plans import NOW, copy, plan, step
from tests.waivers import MARKS

MATCH = Match(terms=(MatchTerm(column="uid", key_set="user.uid", type="bigint"),))
KEYS = KeySet(name="user.uid", origin="uid", weak=False, values=(("s", "55102938"),))


class Started(Exception):
    """Spark would start now."""


def start() -> Any:
    raise Started


def test_the_start_of_spark_is_a_line_of_its_own(tmp_path: Path) -> None:
    """It is the longest wait of a small run, and no copy's counting: what is left is reckoned without it."""
    estate = Estate.model_validate(
        {
            "version": 1,
            "estate": "shop",
            "environment": "local",
            "catalogs": {"spark_catalog": {"type": "declared", "tables": []}},
            "roots": [],
            "lineage": {},
            "subjects": [{"name": "user", "source": "lake.users", "key": "uid"}],
        }
    )
    said: list[str] = []
    made = plan([step("c1/1")], copies=[copy("c1", match=MATCH)])
    looking = Verification(
        plan=made, estate=estate, base=tmp_path, keys=(KEYS,), marks=MARKS, spark=start, now=lambda: NOW
    )
    with pytest.raises(Started):
        looking.take_baselines(lambda told, detail: said.append(told))
    assert said == ["starting Spark, which fetches its jars where it never ran"]
