"""A plan with open gaps cannot be signed, and a waivers file says what of it does nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.model.errors import ExitCode
from pii_tracer.review.trusted_keys import generate
from tests.app.planning.test_nested_subject import called, estate
from tests.waivers import WORD, write_waivers


def planned(base: Path, *words: str) -> dict[str, Any]:
    called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"), *words)
    made: dict[str, Any] = json.loads((base / "p.plan.json").read_bytes())
    return made


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """An estate in which one folder cannot be searched."""
    base = estate(tmp_path)
    (tmp_path / "w" / "images").mkdir()
    (tmp_path / "w" / "images" / "scan.tiff").write_bytes(b"II*\0" + bytes(range(256)))
    return base


def test_a_plan_with_open_gaps_is_not_signed(doubtful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = planned(doubtful)
    assert made["gaps"]
    capsys.readouterr()
    generate(doubtful / "k.pem")
    words = ["--approver", "M", "--role", "dpo", "--reason", "r", "--key", str(doubtful / "k.pem")]
    code = called(doubtful, "approve", str(doubtful / "p.plan.json"), *words)
    told = capsys.readouterr().err
    assert code == ExitCode.NOT_APPROVED, told
    assert "1 gap is open" in told
    assert len(made["gaps"]) == 1
    assert "waive" in told
    assert list(doubtful.glob("*approval*")) == []


def test_waivers_without_effect_are_told(doubtful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gap, *others = planned(doubtful)["gaps"]
    capsys.readouterr()
    file = write_waivers(doubtful / "waivers.yaml", others)
    said = yaml.safe_load(file.read_text())
    said[gap["id"]] = {**WORD, "until": "2020-01-01T00:00:00Z", "of": gap["seen"]}
    file.write_text(yaml.safe_dump({**said, "gap-nothing\\e": WORD}))
    planned(doubtful, "--waivers", str(file))
    told = [line for line in capsys.readouterr().err.splitlines() if "without effect" in line]
    assert told == [
        "waiver without effect: no gap of this plan has the id 'gap-nothing\\\\e'",
        f"waiver without effect: the waiver of '{gap['id']}' ran out on 2020-01-01",
    ]
