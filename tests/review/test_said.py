"""Who answers for something, and why, is written there: blanks and marks alone are nobody's word. That is asked where
it is written; what was planned or signed by an earlier version is read as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from pii_tracer.app.planning.plan_files import read_waivers
from pii_tracer.config.backups import Backup
from pii_tracer.config.subjects import NotKeys
from pii_tracer.model.errors import ConfigError, ReviewError
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.waivers import OwnerTask, Waiver
from pii_tracer.review import dsse
from pii_tracer.review.manual_step_confirmation import confirm, read_confirmation
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.review.trusted_keys import Approver, public_pem
from tests.review.plans import DEADLINE, plan
from tests.review.test_confirmation import DIGEST, NOW, STEP, WORD
from tests.review.test_review import ASHA, KEY, approved, by_hand, check, gap

BLANK = (" ", "\t", "\u200b", "\u2060", "…", "--", "\n", "-", "?", ".", "-->", "👍")
NAMES = ("Δ", "आशा", "李", "Ł. B.", "7")


def waivers(tmp_path: Path, **changes: str) -> Path:
    """As `plan --write-waivers` writes it, filled in."""
    told = {"who": "Asha", "why": "checked", "owner": "Bala", "act": "redact it"} | changes
    lines = [f"  {name}: {_quoted(told[name])}" for name in ("who", "why")]
    task = [f"    {name}: {_quoted(told[name])}" for name in ("owner", "act")]
    file = tmp_path / "waivers.yaml"
    file.write_text("\n".join(["gap-x:", *lines, "  until: 2027-01-01T00:00:00Z", "  of: g1", "  task:", *task, ""]))
    return file


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(one):08x}" for one in text) + '"'


@pytest.mark.parametrize(("field", "named"), [("who", "who"), ("why", "why"), ("owner", "task"), ("act", "task")])
@pytest.mark.parametrize("text", ["", *BLANK])
def test_a_waiver_or_task_of_nobody_is_refused_and_the_field_named(
    tmp_path: Path, field: str, named: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=f"fill in or correct `{named}`"):
        read_waivers(waivers(tmp_path, **{field: text}))


def test_a_name_of_any_script_is_one(tmp_path: Path) -> None:
    for name in NAMES:
        read = read_waivers(waivers(tmp_path, who=name, why=name, owner=name, act=name))["gap-x"]
        assert (read.who, read.why, read.task) == (name, name, OwnerTask(owner=name, act=name))


@pytest.mark.parametrize("text", BLANK)
def test_nor_does_the_estate_file_name_nobody(text: str) -> None:
    hold = {"id": "h", "kind": "legal_hold", "datasets": ["t"], "citation": "c", "from": NOW, "until": "indefinite"}
    assert Hold.model_validate({**hold, "basis": "b", "approver": "Asha"})
    for field in ("basis", "approver"):
        with pytest.raises(ValidationError):
            Hold.model_validate({**hold, "basis": "b", "approver": "Asha", field: text})
    with pytest.raises(ValidationError):
        Backup(name="b", of=("t",), owner=text, location="l")
    with pytest.raises(ValidationError):
        NotKeys(table="t", column="c", reason="r", owner=text)


@pytest.mark.parametrize("field", ["approver", "role", "reason"])
@pytest.mark.parametrize("text", ["", *BLANK])
def test_nobody_approves_with_nothing_that_can_be_read(field: str, text: str) -> None:
    with pytest.raises(ReviewError) as caught:
        approved(**{field: text})
    assert caught.value.what == f"the approval has no valid `{field}`"


@pytest.mark.parametrize("text", BLANK)
def test_a_plan_that_an_earlier_version_made_is_loaded_with_what_it_says(text: str) -> None:
    """A run that has begun with it has to go on, and no other plan is the one that it was approved for."""
    waiver = Waiver(who=text, why=text, until=DEADLINE)
    loaded = parse_plan(plan(gaps=[gap(waiver)]).to_bytes(), "p.plan.json").plan
    assert [one.waiver for one in loaded.gaps] == [waiver]
    task = OwnerTask(owner=text, act=text)
    assert Waiver.model_validate_json(waiver.model_copy(update={"task": task}).model_dump_json()).task == task


@pytest.mark.parametrize("text", ["-", "?", "👍"])
def test_so_is_an_approval_and_a_confirmation(text: str) -> None:
    named = ASHA.model_copy(update={"name": text, "role": text})
    (one,) = check([by_hand(approver=text, role=text, reason=text)], trusted=[named])
    assert one.predicate.reason == text
    word = WORD.model_copy(update={"by": text, "role": text, "said": text})
    who = Approver(name=text, role=text, public_key=public_pem(KEY.public_key()).decode())
    assert dsse.unseal(confirm(DIGEST, word, KEY), [KEY.public_key()]).keyids
    assert read_confirmation(confirm(DIGEST, word, KEY), DIGEST, STEP, [who], NOW).said == word
