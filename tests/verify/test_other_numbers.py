"""Whatever a copy is, it is read with the owner's word on its columns; what is no copy, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app import lakefs_objects, topic_records
from pii_tracer.app.execution import non_copies
from pii_tracer.app.stored_places import hdfs_reading as hdfs_places
from pii_tracer.app.stored_places import object_reading as object_places
from pii_tracer.app.verification import Verification
from pii_tracer.model.datasets import DatasetId, Format, KeySet
from pii_tracer.model.non_key_columns import NotKeys
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.value_forms import Patterns
from tests.s3support import estate
from tests.verify.conftest import a_copy
from tests.waivers import MARKS

DATASET = DatasetId(namespace="kafka://h:1", name="t")
WORD = NotKeys(
    table="t", column="d", dataset=DATASET, location="l", labels=("d",), key_sets=("id",), owner="R", reason="r"
)
KINDS = {
    "topic": (topic_records, "_topic"),
    "repository": (lakefs_objects, "_repository"),
    "folder in HDFS": (hdfs_places, "_place_files"),
    "place of objects": (object_places, "_place_files"),
}


def verification(**more: Any) -> Verification:
    told: dict[str, Any] = {"copies": (), "examined": (), "gaps": (), "not_keys": (WORD,), "plan_id": "p"}
    sets = (KeySet(name="id", origin="id", weak=False, values=(("s", "7340219981"),)),)
    plan, asked = ErasurePlan.model_construct(**told), estate("http://127.0.0.1:9")
    return Verification(plan, asked.model_copy(update=more), Path(), sets, MARKS, lambda: None, lambda: None)  # type: ignore[arg-type, return-value]


def words(seen: list[Any]) -> list[Any]:
    """What is left out by the patterns that a reader was given, those for rows of a table last."""
    return [dict(item.key_columns.not_keys) for item in seen if isinstance(item, Patterns)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_read_with_the_word_on_it(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    module, method = KINDS[kind]
    seen: list[Any] = []
    monkeypatch.setattr(module, "look", lambda *given: seen.extend(given))
    location = "hdfs://h/x" if "HDFS" in kind else "gs://b/x"
    for dataset, left in ((DATASET, {"d": frozenset({"id"})}), (DatasetId(namespace="x", name="y"), {})):
        seen.clear()
        copy = a_copy(Format.CSV, location).model_copy(update={"dataset": dataset})
        getattr(verification(), method)(copy)
        assert words(seen)[-1] == left


@pytest.mark.parametrize(("module", "method"), [(topic_records, "_topic_of"), (lakefs_objects, "_lakefs_of")])
def test_what_is_no_copy_is_read_with_it_too(monkeypatch: pytest.MonkeyPatch, module: Any, method: str) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(module, "look_elsewhere", lambda *given, named, short: seen.extend(given))
    getattr(non_copies, method)(verification(kafka=("declared",)), DATASET)
    assert words(seen)[-1] == {"d": frozenset({"id"})}
