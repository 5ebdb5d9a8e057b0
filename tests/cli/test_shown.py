"""What people read on the terminal beside the reports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pii_tracer.app.settings import DEFAULT_ESTATE, DEFAULT_STATE, Settings
from reports.run.run_views import NaiveLeft, NaivePanel
from sample_lineage.naive_delete import naive_lines
from tests.review.plans import plan


def test_only_settings_that_are_not_default_are_repeated() -> None:
    assert Settings(DEFAULT_ESTATE, DEFAULT_STATE).options() == ()
    other = Settings(Path("a/b.yaml"), Path("state"))
    assert other.options(Path("p.yaml")) == ("--estate", "a/b.yaml", "--state", "state", "--policy", "p.yaml")


def test_the_naive_panel_says_what_was_really_read_and_where() -> None:
    panel = NaivePanel(
        statement="DELETE FROM payments WHERE user_id = ?",
        rows_seen_after=0,
        seconds=3.5,
        readable=("PAN", "phone number"),
        left=(NaiveLeft(dataset="scratch", place="data files", files=1, example="data/a.parquet", hazard="I2"),),
    )
    text = "\n".join(naive_lines(panel))
    assert "took 3.5 s, and SELECT finds 0 rows." in text
    assert "PAN and phone number can still be read in 1 file:" in text
    assert "data/a.parquet" in text
    assert "Aadhaar" not in text


def test_a_locale_without_a_sign_ends_no_command_with_an_error(tmp_path: Path) -> None:
    file = tmp_path / "p.plan.json"
    file.write_bytes(plan().to_bytes())
    locale = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    shown = subprocess.run(
        [sys.executable, "-m", "pii_tracer.cli.main", "show", str(file)],
        env={**os.environ, **locale},
        capture_output=True,
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert "\u256d\u2500 Erasure plan" in shown.stdout.decode()
