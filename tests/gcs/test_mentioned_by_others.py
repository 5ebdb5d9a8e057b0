"""The person in somebody else's row of a folder in Cloud Storage; Azure has the same reader of places and planner."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gcs.shop import Shop
from tests.gcssupport import Gcs
from tests.kits.mentioned_by_others_kit import told_before_the_run, told_of_nobody


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_rows_of_others_that_keep_the_person_are_a_gap(gcs: Gcs, tmp_path: Path, kind: str) -> None:
    told_before_the_run(Shop.of(gcs, tmp_path), kind)


def test_the_persons_own_row_is_none(gcs: Gcs, tmp_path: Path) -> None:
    told_of_nobody(Shop.of(gcs, tmp_path), "csv")
