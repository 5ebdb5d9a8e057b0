"""Who answers for something, and why, is written there: blanks and marks alone are nobody's word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.app.planning.plan_files import read_waivers
from pii_tracer.config.backups import Backup
from pii_tracer.model.errors import ConfigError
from pii_tracer.model.waivers import OwnerTask, Waiver

BLANK = (" ", "\t", "\u200b", "\u2060", "…", "--", "\n")


@pytest.mark.parametrize("field", ["who", "why"])
@pytest.mark.parametrize("text", BLANK)
def test_a_waiver_of_nobody_is_none(field: str, text: str) -> None:
    told: dict[str, Any] = {"who": "Asha", "why": "checked", "until": "2027-01-01T00:00:00Z", "of": "g"}
    assert Waiver(**told).who == "Asha"
    with pytest.raises(ValidationError):
        Waiver(**told | {field: text})


@pytest.mark.parametrize("text", BLANK)
def test_nor_a_task_or_a_backup_of_nobody(text: str) -> None:
    with pytest.raises(ValidationError):
        OwnerTask(owner=text, act="redact it")
    with pytest.raises(ValidationError):
        OwnerTask(owner="Asha", act=text)
    with pytest.raises(ValidationError):
        Backup(name="b", of=("t",), owner=text, location="l")


def test_a_name_of_any_script_is_one() -> None:
    for name in ("Δ", "आशा", "李", "Ł. B.", "7"):
        assert OwnerTask(owner=name, act="redact it").owner == name


def test_the_file_is_refused_and_the_field_named(tmp_path: Path) -> None:
    """As `plan --write-waivers` writes it, filled in with blanks."""
    file = tmp_path / "waivers.yaml"
    file.write_text('gap-x:\n  who: " "\n  why: checked\n  until: 2027-01-01T00:00:00Z\n  of: g1\n')
    with pytest.raises(ConfigError, match="fill in or correct `who`"):
        read_waivers(file)
