"""An estimate for a terminal, the verdict first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.model.estimate import Amounts, Estimate, StepEstimate
from reports.escape import visible
from reports.wording import minute, money, number, size, span

MOST = 50
"""Places that the terminal names in one list; JSON has all of them."""
_SEARCH = "search"
_STEPS = ("step", "steps", "work", "up to", "wall", "read", "written", "requests", "cost", "up to")
_PLACES = ("dearest places", "files", "bytes", "work", "wall", "cost", "up to")


def render_estimate_text(found: Estimate) -> str:
    """Lines for people; names are shown with their invisible characters escaped."""
    return "".join(f"{visible(line).rstrip()}\n" for line in _lines(found))


def verdict(found: Estimate) -> str:
    """The expected case in one sentence."""
    expected = found.total.expected
    word = "At least" if found.at_least else "About"
    executors = counted(found.executors, "executor")
    cost = money(expected.cost, found.currency)
    told = f"{word} {_span(expected.work_seconds)} of work, {_span(expected.wall_seconds)} on {executors}, {cost}"
    search = next((step.cases.expected for step in found.steps if step.kind == _SEARCH), Amounts())
    if not expected.work_seconds:
        return f"{told}: nothing was found to search"
    return f"{told}; search is {100 * search.work_seconds / expected.work_seconds:.0f} % of it"


def _lines(found: Estimate) -> Iterator[str]:
    yield verdict(found)
    low, high = found.total.low, found.total.high
    for name, case in (("if the search finds no person", low), ("if the persons are in every file", high)):
        cost = money(case.cost, found.currency)
        yield f"{name}: {_span(case.work_seconds)} of work, {_span(case.wall_seconds)} on all executors, {cost}"
    what = f"{counted(found.files, 'file')} with {size(found.bytes)} in {counted(found.places, 'place')}"
    yield f"erasing {counted(found.persons, 'person')} from {found.estate}: {what}"
    yield ""
    yield from _table([_STEPS, *(_step_row(found, step) for step in found.steps)])
    if found.dearest:
        yield ""
        yield from _table([_PLACES, *_place_rows(found)])
    for wait in found.waits:
        yield f"wait: {wait.reason}: {minute(wait.until)}"
    for one in found.not_known[:MOST]:
        yield f"not known: {one.where}: {one.reason}"
    if len(found.not_known) > MOST:
        yield f"{number(len(found.not_known) - MOST)} more are not known: use `--format json` to list all of them"
    for assumption in found.assumptions:
        yield f"assumed: {assumption}"


def _step_row(found: Estimate, step: StepEstimate) -> tuple[str, ...]:
    expected, high = step.cases.expected, step.cases.high
    return (
        step.kind,
        number(step.steps),
        _span(expected.work_seconds),
        _span(high.work_seconds),
        _span(expected.wall_seconds),
        size(expected.bytes_read),
        size(expected.bytes_written),
        number(expected.requests),
        money(expected.cost, found.currency),
        money(high.cost, found.currency),
    )


def _place_rows(found: Estimate) -> Iterator[tuple[str, ...]]:
    for place in found.dearest:
        expected, high = place.cases.expected, place.cases.high
        yield (
            place.name,
            number(place.files),
            size(place.bytes),
            _span(expected.work_seconds),
            _span(expected.wall_seconds),
            money(expected.cost, found.currency),
            money(high.cost, found.currency),
        )


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns side by side; all but the first to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for first, *others in rows:
        yield "  ".join([first.ljust(widths[0]), *(t.rjust(w) for t, w in zip(others, widths[1:], strict=True))])


def _span(seconds: float) -> str:
    return span(timedelta(seconds=seconds))
