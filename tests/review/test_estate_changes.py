"""An estate file that changed since a run began: the parts are named, and nothing that stands in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.estate_file import file_digest
from pii_tracer.model.errors import Drift
from pii_tracer.review.estate_changes import refuse_changed_estate, section_digests

BEFORE = "estate: shop\nspark:\n  master: local[2]\nhdfs: []\n"
SETTINGS = f"{BEFORE.replace('local[2]', 'local[2]' + chr(10) + '  conf: {a.b: secret}')}"


@pytest.mark.parametrize(
    ("after", "named", "way_out"),
    [
        (SETTINGS, "in `spark.conf`", "SPARK_CONF_DIR"),
        (SETTINGS.replace("shop", "secret"), "in `estate`, `spark.conf`", "restore the estate file and run"),
        (f"# secret\n{BEFORE}", "in comments or layout only", "restore the estate file and run"),
        (f"{BEFORE}s3: {{region: secret}}\n", "in `s3`", "restore the estate file and run"),
        ("a: [secret", "is no YAML", "restore the estate file and run"),
    ],
)
def test_the_changed_parts_are_named_and_no_value(tmp_path: Path, after: str, named: str, way_out: str) -> None:
    file = tmp_path / "pii-tracer.yaml"
    file.write_text(BEFORE)
    digest, sections = file_digest(file), section_digests(file)
    refuse_changed_estate(file, digest, sections)
    file.write_text(after)
    with pytest.raises(Drift) as drift:
        refuse_changed_estate(file, digest, sections)
    assert drift.value.what.endswith(named)
    assert way_out in str(drift.value.todo)
    assert "secret" not in str(drift.value)
    with pytest.raises(Drift, match="plan again"):
        refuse_changed_estate(file, digest, {})
