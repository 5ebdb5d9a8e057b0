"""The certificate's first page: each sentence is so, for every kind of exception and way of reading."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pii_tracer.proof.attestation import COMPUTED_AGAIN, LEFT_OUT_CELLS
from reports.run.certificate import Checked, certificate, render_certificate

AT = "2026-01-02T00:00:00Z"
ONE = (("R-1", "subj_1", "GDPR"),)


def exception(kind: str, what: str, why: str = "so", until: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "what": what, "why": why, "who": "Asha", "until": until}


def page(
    *exceptions: dict[str, Any],
    reading: dict[str, Any] | None = None,
    asked: int = 1,
    persons: tuple[tuple[str, str, str], ...] = ONE,
    worked_on: tuple[str, ...] = ("c-keys",),
    auditors: bool = False,
) -> str:
    said = {
        "plan": {"id": "plan-1", "digest": "sha256:bb"},
        "steps": [{"copy": copy, "verified_at": AT} for copy in worked_on],
        "approvals": ["x"],
        "scope": {"files": 3, "digest": "d", "at": AT, "reading": reading or {}},
        "others": {"compared": 1, "rows_lost": 0, "changed": 0},
        "exceptions": exceptions,
        "merkle": {"root": "r", "leaves": 3},
        "log": {"size": 0},
        "requests": {"count": asked, "root": "q"},
        "timestamp": {"authority": None},
        "tools": {},
        "not_proved": [],
    }
    statement = {"subject": [{"name": "copy c-app.users", "digest": {"sha256": "aa"}}], "predicate": said}
    text = render_certificate(certificate(statement, Checked(persons, b"{}", "k")))
    text = text[text.index("<article") :].partition('class="sheet auditors"')[2 if auditors else 0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_a_waived_gap_of_an_attestation_of_before_is_no_confirmation() -> None:
    for one in (
        exception("confirmed", "gap-lineage-x", until="2026-12-31T00:00:00Z"),
        exception("confirmed", "gap-lineage-x"),
    ):
        words = page(one)
        assert "1 doubt was not cleared up by the search. A responsible person accepted this" in words
        assert "confirmed what was done" not in words


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (
            f"{LEFT_OUT_CELLS}, by a person's word",
            "1 column was searched, and cells that equal a number of the request stay",
        ),
        (f"{COMPUTED_AGAIN}, not erased", "1 place was computed again by its owner, and not proved by a search."),
        ("act: confirmed", "1 place was not searched. A responsible person confirmed what was done there."),
    ],
)
def test_each_confirmation_is_told_as_what_it_is(why: str, words: str) -> None:
    found = page(exception("confirmed", "c-app.sums", why))
    assert words in found
    assert ("confirmed what was done" in found) == (why == "act: confirmed")


@pytest.mark.parametrize(
    "gap",
    [
        *("unexpected_copy-x", "table_text-x", "no_way-x", "unknown_file-x", "shared-x-y", "of-a-later-version"),
        # places that are there, and that the search did not reach
        *("outside_roots-x", "outside_link-x", "unknown_table-x", "unknown_catalog-x", "catalog_unreadable-x"),
        *("archive_unmatched-x", "backup_unmatched-x", "not_found-x", "format_mismatch-x", "moved_table-x"),
        "registered_twice-x",
    ],
)
def test_where_data_may_stay_nothing_says_that_no_more_was_found(gap: str) -> None:
    words = page(exception("waived", f"gap-{gap}", until="2026-12-31T00:00:00Z"))
    assert "found nothing more" not in words
    assert "Data of you may stay in 1 place, which the company accepted, until 2026-12-31 at the latest." in words


def test_the_first_of_several_ends_is_told() -> None:
    words = page(*(exception("waived", f"gap-lineage-{day}", until=f"2026-12-{day}") for day in ("01", "09", "31")))
    assert "accepted this: the first until 2026-12-01, the last until 2026-12-31." in words


def test_files_that_were_not_decoded_again_were_not_searched_then() -> None:
    oldest = "2025-06-01T00:00:00Z"
    words = page(reading={"before": 3, "oldest": oldest})
    assert "Then we knew 3 files by unchanged bytes from an earlier search, and found nothing more of you." in words
    assert "What we knew was searched on 1 Jun 2025" in words
    words = page(reading={"before": 1, "oldest": oldest})
    assert "Then we searched 2 files and knew 1 file by unchanged bytes" in words
    assert "Then we searched 3 files, and found nothing more of you." in page()


def test_a_person_among_others_is_told_no_number_of_all() -> None:
    assert "We erased your data in 1 place." in page()
    words = page(asked=2)
    assert "1 place" not in words
    assert "We erased your data where the plan found it." in words
    both = (*ONE, ("R-2", "subj_2", "GDPR"))
    assert "We erased this data in 1 place." in page(asked=2, persons=both)


def test_where_others_rows_were_not_compared_is_told() -> None:
    assert "were not compared" not in page(auditors=True)
    words = page(worked_on=("c-keys", "c-keys", "c-archive"), auditors=True)
    assert "none was lost, none was changed. In the other copies that the steps worked on, they were not" in words
