"""The closing table, the run page and the progress lines."""

from __future__ import annotations

import io
import re
import time
from typing import Any

import pytest
from rich.console import Console

from reports.progress import Progress
from reports.run.closing_table import closing_line, print_closing, run_headline
from reports.run.next_steps import next_steps
from reports.run.run_html import render_run_html
from reports.run.run_views import (
    CopyState,
    Holding,
    Residue,
    RunState,
    RunView,
    StepState,
)
from reports.wording import money
from tests.reports.example import example_run
from tests.reports.test_plan_reports import Page


def _closing(run: RunView, width: int = 100) -> str:
    out = io.StringIO()
    print_closing(run, Console(file=out, width=width))
    return out.getvalue()


def _with_copy(run: RunView, copy_id: str, **change: object) -> RunView:
    copies = tuple(copy.model_copy(update=change) if copy.id == copy_id else copy for copy in run.copies)
    return run.model_copy(update={"copies": copies})


def test_the_closing_line_of_a_clean_run() -> None:
    assert closing_line(example_run()) == "19/19 copies erased · residue 0 · bystander rows lost 0"


def test_it_says_in_how_many_copies_others_were_compared() -> None:
    """The rows of an archive were not read, and `0 lost` said nothing of them."""
    run = example_run()
    alone = [c for c in run.counted if c.state is CopyState.ERASED and c.after is not None and c.after.rows is None]
    assert len(alone) == 1
    words = " ".join(_closing(run, 400).split())
    assert "0 rows lost in 11 of 19 copies; not compared in 8: copies from which no rows go by key" in words
    assert run_headline(run)[0] == "Erased and verified, in 1 copy by the files alone"
    page = render_run_html(run)
    assert "in 11 of 19 copies" in page
    assert "0 rows lost in 11 of 19 copies; not compared in 8" in page
    read = _with_copy(run, run.counted[0].id)
    for copy in run.counted:
        read = _with_copy(read, copy.id, after=Holding(files=0, rows=0))
    assert run_headline(read)[0] == "Erased and verified"


def test_what_was_not_read_is_no_row_that_was_not_verified() -> None:
    run = example_run()
    first = run.counted[0]
    unread = _with_copy(run, first.id, before=Holding(files=1, rows=1), after=Holding(files=0, rows=None))
    assert "1 → not read" in " ".join(_closing(unread, 200).split())
    page = render_run_html(unread)
    assert '<span class="soft">not read</span>' in page
    assert '<span class="warn">not verified</span>' not in page


def test_a_copy_counts_only_when_all_that_hangs_from_it_is_gone() -> None:
    run = example_run()
    beyond = run.beyond[0]
    for state in CopyState:
        changed = _with_copy(run, beyond.id, state=state)
        assert changed.erased == (19 if state is CopyState.ERASED else 18)


def test_what_hangs_is_found_at_any_depth() -> None:
    run = example_run()
    first, second = run.beyond[2], run.beyond[3]
    deep = _with_copy(run, second.id, origin=first.id, state=CopyState.RESIDUE)
    assert first.origin is not None
    assert second.id in {copy.id for copy in deep.hanging_from(first.origin)}
    assert deep.erased == 18


@pytest.mark.parametrize(
    ("change", "tone"),
    [
        ({}, "good"),
        ({"bystander_rows_lost": 1}, "bad"),
        ({"residue": (Residue(copy_="copy-02", file="f", where="footer", form="plain text"),)}, "bad"),
        ({"state": RunState.PARTIAL}, "warn"),
        ({"state": RunState.WAITING}, "warn"),
        ({"bytes_checked": None}, "warn"),
    ],
)
def test_complete_is_said_only_when_the_facts_carry_it(change: dict[str, object], tone: str) -> None:
    run = example_run().model_copy(update=change)
    assert run_headline(run)[1] == tone
    assert ("Erased and verified" in render_run_html(run)) is (tone == "good")


def test_facts_below_the_top_level_are_looked_at_too() -> None:
    run = example_run()
    assert run.bytes_checked is not None
    unread = run.bytes_checked.model_copy(update={"unread": ("x.parquet",)})
    assert run_headline(run.model_copy(update={"bytes_checked": unread}))[1] == "warn"
    changed = run.bystanders[0].model_copy(update={"checksum_after": "other"})
    assert run_headline(run.model_copy(update={"bystanders": (changed,)}))[1] == "bad"
    assert run_headline(_with_copy(run, "copy-03", state=CopyState.FAILED))[1] == "warn"
    assert run_headline(_with_copy(run, "copy-20", state=CopyState.RESIDUE))[1] == "bad"


def test_a_backup_on_a_persons_word_does_not_make_a_run_partial() -> None:
    run = _with_copy(example_run(), "copy-03", state=CopyState.CONFIRMED)
    assert run_headline(run) == ("Erased and verified, except for places that only a person confirmed", "good")


def test_the_closing_table_has_every_copy_with_before_and_after() -> None:
    text = _closing(example_run())
    assert re.search(r"✔\s+lake\.prod\.payments\s+derived\s+7 → 0\s+214 → 0", text)
    assert text.count("✔") == 24
    for path in ("deletion-log.jsonl", "attestation.json", "report.html"):
        assert path in text


def test_what_did_not_go_well_is_named() -> None:
    run = _with_copy(example_run(), "copy-02", state=CopyState.RESIDUE, after=Holding(files=2, rows=1))
    item = Residue(copy_="copy-02", file="data/a.parquet", where="row group 0", form="plain text")
    text = _closing(run.model_copy(update={"state": RunState.RESIDUE, "residue": (item,)}))
    assert "18/19 copies erased · residue 1" in text
    assert "7 → 2" in text
    assert "data/a.parquet (row group 0, plain text)" in text
    unverified = _with_copy(example_run(), "copy-02", state=CopyState.NOT_VERIFIED, after=None)
    assert "7 → ?" in _closing(unverified)
    assert "not verified" in render_run_html(unverified)


def test_the_run_page_needs_nothing_from_anywhere() -> None:
    text = render_run_html(example_run())
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe", "a", "form"}
    assert not {name for name, _ in page.attributes} & {"src", "href", "srcset"}
    assert not re.search(r"https?:|url\(|@import", text)


def test_the_run_page_tells_all() -> None:
    run = example_run()
    words = " ".join(Page(render_run_html(run)).words)
    assert run.bytes_checked is not None
    assert run.naive is not None
    for told in (*run.limits, *run.bytes_checked.forms, *run.bytes_checked.other_meaning, run.proofs.plan_digest):
        assert told in words
    assert "48 files" in words
    assert all(item.example in words for item in run.naive.left)
    assert all(step.id in words for copy in run.copies for step in copy.steps)
    assert "8830174529914470211" in words


def test_hostile_names_in_the_run_reports(hostile: str) -> None:
    run = example_run()
    assert run.naive is not None
    left = run.naive.left[0].model_copy(update={"dataset": hostile, "example": hostile, "place": hostile})
    naive = run.naive.model_copy(update={"left": (left,)})
    step = run.copies[0].steps[0]
    step = step.model_copy(update={"note": hostile, "state": StepState.FAILED, "snapshot_after": hostile})
    run = _with_copy(run, "copy-01", table=hostile, note=hostile, steps=(step,))
    item = Residue(copy_="copy-01", file=hostile, where=hostile, form="plain text")
    run = run.model_copy(
        update={
            "residue": (item,),
            "naive": naive,
            "limits": (hostile,),
            "estate": hostile,
            "proofs": run.proofs.model_copy(update={"report": hostile, "approved_by": hostile}),
        }
    )
    text = render_run_html(run)
    clean = Page(render_run_html(example_run()))
    assert Page(text).tags <= clean.tags
    assert {name for name, _ in Page(text).attributes} <= {name for name, _ in clean.attributes}
    for shown in (text, _closing(run)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b-\u200f\u202a-\u202e]", shown)


def test_the_run_page_says_which_column_chunks_were_not_decoded() -> None:
    run = example_run()
    assert "column chunk" not in render_run_html(run)
    checked = run.bytes_checked.model_copy(update={"shaped": 2, "chunks_left": 7})
    page = render_run_html(run.model_copy(update={"bytes_checked": checked}))
    assert "7 column chunks in 2 files were not decoded: in what was written down when they were decoded, none" in page
    assert "not all pages were read" not in page
    parts = {"in_parts": 1, "known_since": run.finished}
    for first in (checked, run.bytes_checked.model_copy(update={"known": 1})):
        page = render_run_html(run.model_copy(update={"bytes_checked": first.model_copy(update=parts)}))
        assert "Of 1 object, not all pages were read. The others were read on " in page


def test_the_run_page_says_of_which_objects_the_store_tells_that_they_are_the_same() -> None:
    run = example_run()
    known = {"known": 3, "known_since": run.finished, "known_by_store": 2}
    page = render_run_html(run.model_copy(update={"bytes_checked": run.bytes_checked.model_copy(update=known)}))
    assert "Of 2 objects among them, the store's version and ETag say this." in page


def test_the_same_run_gives_the_same_bytes() -> None:
    again = RunView.model_validate_json(example_run().model_dump_json(by_alias=True))
    assert render_run_html(again) == render_run_html(example_run())
    assert _closing(again) == _closing(example_run())


def test_progress_in_plain_lines() -> None:
    out = io.StringIO()
    with Progress(2, console=Console(file=out, width=80)) as progress:
        progress.stage("Plan")
        progress.step("scan", "lake.prod\n")
        progress.warn("slow \x1b[31mdisk")
        progress.done("12 files")
        progress.stage("Apply")
        progress.step("delete")
        progress.stop("waiting 2026-12-01")
        progress.stop("failed: no answer")
    lines = [re.sub(r"\d+\.\d s$", "N s", line) for line in out.getvalue().splitlines()]
    assert lines == [
        "[1/2] Plan",
        "  ! slow \\x1b[31mdisk",
        "  ✓ scan  12 files  N s",
        "[2/2] Apply",
        "  ! delete  waiting 2026-12-01  N s",
        "  ! failed: no answer",
    ]


def test_a_step_that_raises_is_not_ticked() -> None:
    out = io.StringIO()
    progress = Progress(console=Console(file=out, width=80))

    def work() -> None:
        with progress:
            progress.step("delete")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert "✗ delete" in out.getvalue()
    assert "✓" not in out.getvalue()


def test_progress_on_a_terminal_leaves_the_same_lines() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    with Progress(console=console) as progress:
        progress.step("scan", "lake")
        progress.step("plan")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert re.search(r"✓ scan  lake  \d", plain)
    assert re.search(r"✓ plan  \d", plain)


def test_what_works_long_says_so_again_and_again() -> None:
    """A step of minutes looks like a hang otherwise; elsewhere than on a terminal nothing else would be printed."""
    out = io.StringIO()
    with Progress(console=Console(file=out, width=200), quiet=0.01) as progress:
        progress.step("kafka compact · orders", "the plan reckons with 2 min")
        deadline = time.monotonic() + 120
        while out.getvalue().count("…") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        progress.step("verify")
    lines = out.getvalue().splitlines()
    assert re.fullmatch(r"  … kafka compact · orders  the plan reckons with 2 min  \d+\.\d s so far", lines[0])
    assert re.fullmatch(r"  … kafka compact · orders  the plan reckons with 2 min  \d+\.\d s so far", lines[1])
    at = next(n for n, line in enumerate(lines) if "✓ kafka" in line)
    assert not [line for line in lines[at:] if "… kafka" in line]


RESULT = {
    "plan_id": "plan-1",
    "residue": [],
    "unverified": [],
    "drift": [],
    "waiting_until": None,
    "failed": [],
    "attestation": None,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        (
            {"residue": [{"foreseen": ["gap-a"]}, {"foreseen": []}]},
            ["remaining data in 1 place", "no waiver expected data in 1 place"],
        ),
        ({"residue": [{"foreseen": ["gap-a", "gap-b"]}]}, ["(gap-a, gap-b)"]),
        ({"residue": [{}]}, ["--source-erased"]),
        ({"residue": [{}]}, ["stop jobs that write there"]),
        ({"bystander_rows_lost": 3, "residue": [{}]}, ["3 rows of other people", "--source-erased"]),
        ({"bystander_rows_lost": 1, "failed": [{}]}, ["restore the rows of other people"]),
        ({"unverified": ["c1: cut off"]}, ["could not be read"]),
        ({"drift": [{}]}, ["plan again"]),
        ({"waiting_until": "2026-12-01T00:00:00+00:00"}, ["from 2026-12-01"]),
        ({"failed": [{}]}, ["fix the errors in the report"]),
    ],
)
def test_a_run_that_is_not_complete_says_what_to_do_next(changes: dict[str, Any], words: list[str]) -> None:
    told = next_steps({**RESULT, **changes}, "/srv/a state")
    assert len(told) == len(words)
    for line, word in zip(told, words, strict=True):
        assert word in line
        assert "drift" in changes or "`pii-tracer resume plan-1 --state '/srv/a state'`" in line


def test_a_run_that_is_complete_says_how_to_answer_and_to_close_the_request() -> None:
    [told] = next_steps({**RESULT, "attestation": "/srv/a.json"}, "/srv/a state")
    assert told == (
        "answer the person with `pii-tracer attest certificate plan-1 --state '/srv/a state'`, then destroy the sealed"
        " values with `pii-tracer close plan-1 --state '/srv/a state'`"
    )


@pytest.mark.parametrize(("cost", "said"), [(0.0, "nothing priced"), (0.5, "₹0.50"), (1840.0, "₹1,840")])
def test_a_plan_without_prices_claims_no_cost(cost: float, said: str) -> None:
    """Zero of a currency would be a claim; nothing in the estate file has a price."""
    assert money(cost, "INR") == said
