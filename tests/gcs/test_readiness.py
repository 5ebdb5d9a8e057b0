"""A reading of folders in Cloud Storage, which only a plan searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import Shop
from tests.gcssupport import Gcs
from tests.hdfs.shop import OTHERS, PERSON, csv


def test_what_only_a_search_tells_is_unknown(gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("out", "a.csv", csv(PERSON, *OTHERS))
    shop.write(holds=[], readiness={"laws": ["GDPR"]})
    assert shop.cli("readiness", "--format", "json") == ExitCode.INCOMPLETE
    found = json.loads(capsys.readouterr().out)
    assert (found["ready"], found["answer"]) == (False, "unknown")
    [one] = [one for one in found["findings"] if one["kind"] == "gap"]
    assert (one["level"], one["gap"], one["text"].count("not searched")) == ("unknown", "object_place", 1)
