"""How long a file of a partition stays: as its path tells, and as long as the longest where it does not."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from pydantic import ValidationError

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.retention.sweep_rules import Target

NOW = datetime(2026, 11, 23, tzinfo=timezone.utc)
RULES = (("land=DE", 60), ("land=a b/day=1", 90))


@pytest.mark.parametrize(
    ("file", "days"),
    [
        ("land=FR/x.parquet", 7),
        ("land=DE/x.parquet", 60),
        ("land=DE/day=7/x.parquet", 60),
        ("land=DEU/x.parquet", 7),
        ("land=a%20b/day=1/x.parquet", 90),
        ("land=a b/day=2/x.parquet", 7),
        ("day=1/land=a b/x.parquet", 90),
        # not told: a random prefix, a physical name, a part of it
        ("Xy/x.parquet", 90),
        ("col-8c2f=DE/x.parquet", 90),
        ("x.parquet", 90),
        ("land=a b/x.parquet", 90),
        ("LAND=FR/x.parquet", 90),
    ],
)
def test_a_file_stays_as_long_as_its_partition(file: str, days: int) -> None:
    target = Target("t", None, Path("/wh/land=XX/t"), DELTA, "pii", 7, partitions=RULES)
    assert (NOW - target.cutoff_of(f"/wh/land=XX/t/{file}", NOW)).days == days


@pytest.mark.parametrize("kept", [{"land=DE": "unknown"}, {"DE": "pii"}, {"land=DE/": "pii"}, {"": "pii"}])
def test_rules_that_mean_nothing_are_refused(kept: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        RetentionClasses(tables={"t": "pii"}, partitions={"t": kept})
