"""A draft of waivers: every open gap with its digest, and refused until a person filled it in."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pii_tracer.app.planning.plan_files import draft_waivers, read_waivers, refuse_existing
from pii_tracer.model.errors import ConfigError, UsageError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from pii_tracer.model.waivers import Waiver
from tests.review.plans import DEADLINE, plan

EVIL = "gap-x: {who: me}\n# \u2028gap-y"


def gap(name: str, kind: GapKind = GapKind.UNREADABLE, waiver: Waiver | None = None) -> Gap:
    return Gap(id=name, dataset=None, kind=kind, reason=f"so\n{EVIL}", evidence="e", waiver=waiver, seen=f"g{name}")


def test_an_unknown_key_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("gap-a: {who: A, why: b, until: 2026-12-31T00:00:00Z, 'asha@x.example': 1}\n")
    with pytest.raises(ConfigError, match="correct an unknown key") as told:
        read_waivers(file)
    assert "asha" not in str(told.value)


def test_a_folder_in_which_nothing_can_be_written_is_refused_before_a_plan_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="no waivers can be written"):
        refuse_existing(tmp_path / "file" / "w.yaml")
    refuse_existing(tmp_path / "new" / "w.yaml")


def test_every_gap_that_may_be_waived_is_drafted_and_refused_until_it_is_filled_in(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    done = gap("done", waiver=Waiver(who="w", why="y", until=DEADLINE))
    gaps = [gap("a"), gap(EVIL), gap("left", GapKind.LEFT_OUT), gap("never", GapKind.LINEAGE), done]
    assert draft_waivers(plan(gaps=gaps), {"lineage"}, file) == 2
    said = yaml.safe_load(file.read_text())
    assert {name: entry["of"] for name, entry in said.items()} == {"a": "ga", EVIL: f"g{EVIL}"}
    with pytest.raises(ConfigError, match="fill in or correct `until`, `who`, `why`"):
        read_waivers(file)
    for empty in ("who", "why", "until"):
        filled = {n: {**e, "who": "W", "why": "y", "until": "2026-12-31T00:00:00Z"} for n, e in said.items()}
        filled["a"][empty] = ""
        file.write_text(yaml.safe_dump(filled))
        with pytest.raises(ConfigError, match=f"`{empty}`"):
            read_waivers(file)
        filled["a"][empty] = {"until": "2026-12-31T00:00:00Z"}.get(empty, "x")
        file.write_text(yaml.safe_dump(filled))
        assert {name: waiver.of for name, waiver in read_waivers(file).items()} == {"a": "ga", EVIL: f"g{EVIL}"}


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    refuse_existing(file)
    file.write_text("a: 1")
    with pytest.raises(UsageError, match="there already"):
        refuse_existing(file)
