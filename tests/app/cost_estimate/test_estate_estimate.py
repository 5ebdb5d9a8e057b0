"""An estimate of a real estate on disk: its bytes, its gaps, what it opens, and a plan for the same persons."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from jsonschema import Draft202012Validator

from pii_tracer.app import estimate, plan
from pii_tracer.app.settings import moment
from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.model.estimate import Estimate
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.schemas import ESTIMATE_SCHEMA, estimate_schema
from reports.estimate_text import render_estimate_text
from tests.app.cost_estimate.estate import USERS, Shop, emptied

AT = moment("2026-11-28T00:00:00Z")

_opened: list[str] | None = None


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(args[0], (str, os.PathLike)):
        _opened.append(os.fspath(args[0]))


sys.addaudithook(_hear)


def made(shop: Shop, **more: Any) -> Estimate:
    return estimate(shop.settings, **{"persons": 1, "rate": 50.0, "as_of": AT, **more})


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.full(tmp_path)


def test_bytes_are_what_the_file_system_says(shop: Shop) -> None:
    (shop.root / "exports" / "_SUCCESS").write_text("")
    (shop.root / "exports" / ".part.crc").write_bytes(b"x" * 7)
    (shop.root / "logs" / "_temporary" / "0").mkdir(parents=True)
    (shop.root / "logs" / "_temporary" / "0" / "left.bin").write_bytes(b"x" * 11)
    (shop.root / "logs" / "a.csv").write_text("user_id\n1\n")
    (shop.root / "logs" / "below").mkdir()
    (shop.root / "logs" / "below" / "b.csv").write_text("user_id\n1\n")
    (shop.root / "link").symlink_to(shop.root / "logs")
    found = made(shop)
    assert (found.bytes, found.files) == (shop.bytes(), len(shop.files()))
    places = {place.name: place for place in found.dearest}
    assert set(places) == {
        "app.users",
        "core.prod.mails",
        "app.exports",
        str(shop.root / "logs"),
        str(shop.root / "logs/below"),
    }
    for name in ("users", "exports"):
        assert places[f"app.{name}"].bytes == shop.bytes(shop.root / name)
    [mails] = [path for path in shop.root.rglob("mails*") if path.is_dir()]
    assert places["core.prod.mails"].bytes == shop.bytes(mails)
    assert places[str(shop.root / "logs")].bytes == 10 + 11
    assert found.total.low.bytes_read == found.bytes
    assert not found.at_least
    assert not found.not_known


def test_a_name_that_is_not_utf_8_is_shown_escaped(shop: Shop) -> None:
    strange = os.fsencode(shop.root) + b"/x\xff"
    os.mkdir(strange)  # noqa: PTH102 (bytes)
    Path(os.fsdecode(strange), "a.csv").write_text("user_id\n1\n")
    found = made(shop)
    assert f"{shop.root}/x\\xff" in {place.name for place in found.dearest}
    assert found.model_dump_json()
    assert render_estimate_text(found).encode()


def test_a_tag_is_a_copy_of_its_own(shop: Shop) -> None:
    steps = {step.kind: step.steps for step in made(shop).steps}
    assert steps["iceberg_rewrite_ref"] == 1
    assert steps["verify_copy"] == 4


def test_a_folder_that_refuses_makes_it_at_least(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(shop)
    refused = shop.root / "exports" / "day=1"
    lost = shop.bytes(refused)
    scandir = os.scandir

    def guarded(path: Any) -> Any:
        if Path(path) == refused:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = made(shop)
    assert found.at_least
    [one] = found.not_known
    assert (one.where, one.reason) == (str(refused), "it cannot be listed: Permission denied")
    assert found.bytes == before.bytes - lost
    text = render_estimate_text(found)
    assert text.startswith("At least ")
    assert f"not known: {refused}: it cannot be listed" in text
    assert render_estimate_text(before).startswith("About ")


def test_tables_that_are_not_there_and_links_that_lead_out_are_named(shop: Shop, tmp_path: Path) -> None:
    shop.tables["app.gone"] = ("delta", "gone")
    (shop.root / "out").symlink_to("/etc")
    found = {one.where: one.reason for one in made(shop).not_known}
    assert found == {
        str(shop.root / "gone"): "the table app.gone does not exist",
        str(shop.root / "out"): "a symbolic link has a target outside of the estate's roots, or no target",
    }


def test_a_table_whose_branches_cannot_be_read_is_named(shop: Shop) -> None:
    [metadata] = [p for p in shop.root.rglob("*.metadata.json") if p.name.startswith("00002")]
    metadata.write_text("{")
    found = made(shop)
    assert any(one.reason.startswith("its branches and tags are not known: ") for one in found.not_known)
    assert found.at_least


def test_no_file_with_data_is_opened(shop: Shop) -> None:
    global _opened
    data = [path for path in shop.files() if path.suffix == ".parquet"]
    assert len(data) == 6
    before, settings = made(shop), shop.settings
    for path in data:
        emptied(path)
    _opened = []
    try:
        after = estimate(settings, persons=1, rate=50.0, as_of=AT)
        opened = _opened
    finally:
        _opened = None
    assert after == before
    below = {path for path in opened if path.startswith(str(shop.root))}
    assert {Path(path).name.partition(".")[2] for path in below} == {"metadata.json"}


@pytest.mark.parametrize(
    "more",
    [{"persons": 0}, {"executors": 0}, {"touched": 0.0}, {"touched": 1.1}, {"rate": 0.0}, {"rate": float("nan")}],
)
def test_numbers_that_mean_nothing_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        made(Shop(tmp_path), **more)


def test_what_is_waited_for_is_dated_and_no_work(shop: Shop) -> None:
    shop.more = (
        "retention: {pii_days: 9}\n"
        "backups: [{name: dump, of: [app.users], owner: DBA, location: vault, due_days: 30}]\n"
        "windows: {weekly: ['sat 22:00-06:00 UTC']}\n"
    )
    waits = {wait.reason: (wait.until - AT).total_seconds() / 86_400 for wait in made(shop).waits}
    assert waits["tables keep old versions for 9 days (`retention.pii_days`)"] == 9
    assert waits["the owner of the backup dump acts"] == 30
    assert waits["the next weekly window opens"] == pytest.approx(22 / 24)
    later = made(shop, as_of=moment("2027-06-01T00:00:00Z"))
    [notice] = [wait for wait in later.waits if wait.reason.startswith("DPDP: persons get a notice before")]
    assert (notice.until - later.at).total_seconds() == 48 * 3600


def test_the_command_prints_the_verdict_first_and_json_by_the_schema(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.tables["app.gone"] = ("delta", "gone")
    told = ["--estate", str(shop.settings.estate_file), "--state", str(shop.base / "state"), "--rate", "50"]
    command = ["estimate", *told, "--persons", "5", "--executors", "4", "--touched", "0.2"]
    assert run(command) == ExitCode.INCOMPLETE
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("At least ")
    assert " on 4 executors, $" in first
    assert "search is 0 % of it" in first
    assert any(line.startswith("search ") for line in lines)
    assert any(line.startswith("not known: ") for line in lines)
    assert any("one person is in 0.2 of every place's files" in line for line in lines)
    assert run([*command, "--format", "json"]) == ExitCode.INCOMPLETE
    found = json.loads(capsys.readouterr().out)
    schema = json.loads(ESTIMATE_SCHEMA.read_bytes())
    assert [e.message for e in Draft202012Validator(schema).iter_errors(found)] == []
    assert (found["persons"], found["executors"], found["touched"]) == (5, 4, 0.2)
    assert found["touched_by_all"] == pytest.approx(1 - 0.8**5)
    del found["at_least"]
    assert not Draft202012Validator(schema).is_valid(found)
    shop.tables.pop("app.gone")
    assert shop.settings
    assert run(command) == ExitCode.DONE


def test_the_committed_schema_is_what_the_model_says() -> None:
    assert ESTIMATE_SCHEMA.read_bytes() == estimate_schema(), "run `python -m pii_tracer.schemas`"


def test_nothing_measured_is_measured_here(shop: Shop) -> None:
    found = made(shop, rate=None)
    assert found.measured
    assert found.rate_mib_s > 1
    assert not made(shop).measured


PAID = ("delta", "iceberg", "verify")
"""Executors whose bytes are paid for."""
SCANNED = 100_000.0
"""As the estate file has it: bytes of small tables then cost something."""


def spread(shop: Shop) -> ErasurePlan:
    """A plan for the person, who is in every data file of two tables."""
    wanted = plan(
        shop.settings,
        [shop.base / "request.yaml"],
        as_of=moment(None),
        planner="Ben Okafor",
        out=shop.base / "p.plan.json",
    )
    return wanted.plan


def test_a_plan_for_the_same_touched_files_has_the_same_steps_and_prices(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.delta("users", 3)
    shop.flat("exports", 4)
    shop.iceberg()
    planned = spread(shop)
    assert planned.complete, planned.gaps
    found = made(shop, touched=1.0)
    kinds = {step.kind: step for step in found.steps}
    assert {kind: step.steps for kind, step in kinds.items() if kind != "search"} == Counter(
        step.action.value for step in planned.steps
    )
    copies = {copy.id: copy for copy in planned.copies}
    sizes = {copy.id: shop.bytes(Path(copy.location)) for copy in planned.copies}
    costs: dict[str, float] = {}
    for step in planned.steps:
        # a plan counts the files in which a value was seen, and none for a verification; the estimate counts all
        more = sizes.get(step.copy_ or "", 0) - step.estimate.bytes if step.executor in PAID else 0
        assert more >= 0
        again = step.action.value == "verify_copy" and "ref" in copies[step.copy_ or ""].facts
        paid = step.estimate.cost + (0 if again else SCANNED * more / 1e9)
        costs[step.action.value] = costs.get(step.action.value, 0.0) + paid
    for kind, cost in costs.items():
        assert kinds[kind].cases.high.cost == pytest.approx(cost, abs=0.05), kind
        assert (cost > 1) is kind.startswith(("delta", "iceberg", "verify")), kind


def test_a_plan_lies_between_low_and_high_where_a_part_is_touched(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    folder = shop.delta("users", 1)
    for _ in range(3):
        write_deltalake(folder, USERS.slice(1), mode="append")
    planned = spread(shop).totals.cost
    cases = made(shop, touched=0.25).total
    assert cases.low.cost < planned < cases.high.cost
    assert cases.low.cost < cases.expected.cost < cases.high.cost
