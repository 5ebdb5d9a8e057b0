"""The last thing a run says: every copy before and after, the sum, and where the proof lies."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pii_tracer.common.plurals import counted, first_of
from reports import wording
from reports.escape import visible
from reports.run.run_views import (
    CopyRun,
    CopyState,
    Holding,
    RunState,
    RunView,
)

MARKS = {
    CopyState.ERASED: ("✔", "green", "erased"),
    CopyState.CONFIRMED: ("✍", "yellow", "confirmed"),
    CopyState.RESIDUE: ("✗", "bold red", "residue"),
    CopyState.EXEMPT: ("§", "yellow", "exempt"),
    CopyState.MASKED: ("§", "yellow", "masked"),
    CopyState.WAITING: ("…", "yellow", "waiting"),
    CopyState.FAILED: ("✗", "bold red", "failed"),
    CopyState.NOT_STARTED: ("–", "dim", "not started"),
    CopyState.NOT_VERIFIED: ("?", "yellow", "not verified"),
}
_UNCOMPARED = (
    "copies from which no rows go by key, copies that are not verified, and in S3 replicas, and archives that need a"
    " restore or that owners wrote"
)
_COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}
_NAMED = 5
"""Open requests that the verdict names."""
_RESIDUE_SHOWN = 20


HEADLINES = {
    RunState.COMPLETE: "Erased and verified",
    RunState.RESIDUE: "Residue found: the listed places still contain data of the persons",
    RunState.PARTIAL: "Partial: some steps have not run or have failed; the run can be resumed",
    RunState.WAITING: "Waiting: the rest can only run later",
    RunState.BLOCKED: "Blocked: a hold, a lock or a change since planning stops the remaining steps",
}


def run_headline(run: RunView) -> tuple[str, str]:
    """(sentence, `good`, `warn` or `bad`). The caller's `complete` is believed only as far as the facts carry it."""
    if run.bystander_rows_lost or not all(item.intact for item in run.bystanders):
        return "Rows of other people were lost or changed", "bad"
    if run.open_requests:
        return attested_but(len(run.requests), run.open_requests), "warn"
    if run.residue or run.state is RunState.RESIDUE or any(copy.state is CopyState.RESIDUE for copy in run.copies):
        return HEADLINES[RunState.RESIDUE], "bad"
    if run.left_out and run.state is RunState.PARTIAL and run.erased + run.exempt == len(run.counted):
        left = counted(len(run.left_out), "copy was", "copies were")
        return f"Done as planned, but not a complete erasure: {left} left out", "warn"
    if run.state is not RunState.COMPLETE:
        return HEADLINES[run.state], "warn"
    if run.erased + run.exempt + run.confirmed < len(run.counted):
        return HEADLINES[RunState.PARTIAL], "warn"
    if not run.copies:
        return "Verified: no data of the person was left", "good"
    if run.bytes_checked is None or run.bytes_checked.unread:
        return "Done, but not verified: not every byte could be read", "warn"
    if run.exempt:
        return "Erased and verified, except for held data", "good"
    if run.confirmed:
        return "Erased and verified, except for places that only a person confirmed", "good"
    if run.by_files_alone:
        return f"Erased and verified, in {counted(run.by_files_alone, 'copy', 'copies')} by the files alone", "good"
    return HEADLINES[RunState.COMPLETE], "good"


def told_of_others(run: RunView) -> str:
    """In how many copies the rows of all other people were compared, and why not in the others."""
    copies, left = counted(len(run.counted), "copy", "copies"), len(run.counted) - run.compared
    lost = counted(run.bystander_rows_lost, "row")
    told = f"rows of other people, before and after: {lost} lost in {run.compared} of {copies}"
    return f"{told}; not compared in {left}: {_UNCOMPARED}" if left > 0 else told


def attested_but(asked: int, still: Sequence[str]) -> str:
    """`Attested: 999 of 1,000 requests; 1 stays open: R-7`. asked: requests of the plan."""
    stay = f"{counted(len(still), 'stays', 'stay')} open: {first_of(still, _NAMED)}"
    return f"Attested: {asked - len(still):,} of {counted(asked, 'request')}; {stay}"


def print_closing(run: RunView, console: Console) -> None:
    """Print the closing table; colour is the console's business."""
    console.print(render_closing(run))


def render_closing(run: RunView) -> RenderableType:
    """The same as a rich renderable."""
    parts: list[RenderableType] = [_copies(run), _sum(run)]
    if run.residue:
        parts.append(_residue(run))
    proofs = _proofs(run)
    if proofs.row_count:
        parts.append(Padding(proofs, (1, 0, 0, 0)))
    return Group(*parts)


def tree(run: RunView) -> list[tuple[int, CopyRun]]:
    """Copies with their depth, each followed by what hangs from it; nothing is left out."""
    known = {copy.id for copy in run.copies}
    found: list[tuple[int, CopyRun]] = []
    seen: set[str] = set()

    def add(copy: CopyRun, depth: int) -> None:
        if copy.id in seen:
            return
        seen.add(copy.id)
        found.append((depth, copy))
        for child in run.copies:
            if child.origin == copy.id:
                add(child, depth + 1)

    for copy in run.copies:
        if copy.origin not in known:
            add(copy, 0)
    for copy in run.copies:
        add(copy, 0)
    return found


def _copies(run: RunView) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("copy", overflow="fold")
    table.add_column("kind", no_wrap=True, style="dim")
    table.add_column("files", justify="right", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("", overflow="fold", style="dim")
    for depth, copy in tree(run):
        mark, style, word = MARKS[copy.state]
        name = wording.place_name(copy.table, copy.dataset.name, copy.location)
        note = [] if copy.state is CopyState.ERASED else [word]
        if copy.waiting_until:
            note.append(f"until {wording.minute(copy.waiting_until)}")
        if copy.note:
            note.append(visible(copy.note))
        table.add_row(
            Text(mark, style=style),
            Text("  " * (depth - 1) + "↳ " if depth else "", style="dim").append(visible(name)),
            wording.KINDS[copy.kind],
            _change(copy.before, copy.after, files=True),
            _change(copy.before, copy.after, files=False),
            Text(": ".join(note)),
        )
    return table


def _change(before: Holding, after: Holding | None, *, files: bool) -> Text:
    first = before.files if files else before.rows
    last = (after.files if files else after.rows) if after else None
    if first is None and last is None:
        return Text("–", style="dim")
    known = "?" if after is None else "not read" if last is None else wording.number(last)
    style = "dim" if after is None else "green" if last == 0 else "bold red" if last else "dim"
    return Text.assemble((f"{wording.number(first)} → ", "dim"), (known, style))


def closing_line(run: RunView) -> str:
    """`19/19 copies erased · residue 0 · bystander rows lost 0`; what is not verified is said, not left out."""
    parts = [f"{run.erased}/{counted(len(run.counted), 'copy', 'copies')} erased"]
    if run.confirmed:
        parts.append(f"{run.confirmed} confirmed by a person")
    if run.exempt:
        parts.append(f"{run.exempt} exempt")
    parts += [f"residue {len(run.residue)}", f"bystander rows lost {run.bystander_rows_lost:,}"]
    return " · ".join(parts)


def _sum(run: RunView) -> RenderableType:
    headline, tone = run_headline(run)
    colour = _COLOURS[tone]
    line = Text(closing_line(run), style=f"bold {colour}")
    rest = Text(
        f"{counted(run.rows_erased, 'row')} erased in {wording.span(run.finished - run.started)}"
        + (f" · {counted(len(run.beyond), 'copy', 'copies')} beyond" if run.beyond else ""),
        style="dim",
    )
    lines: list[RenderableType] = [line, rest, Text(told_of_others(run), style="dim")]
    if tone != "good":
        until = f" (until {wording.minute(run.waiting_until)})" if run.waiting_until else ""
        lines.insert(0, Text(headline + until, style=f"bold {colour}"))
    return Padding(Group(*lines), (1, 0, 0, 0))


def _residue(run: RunView) -> RenderableType:
    names = {copy.id: wording.place_name(copy.table, copy.dataset.name, copy.location) for copy in run.copies}
    lines: list[RenderableType] = []
    for item in run.residue[:_RESIDUE_SHOWN]:
        place = names.get(item.copy_, item.copy_)
        waived = f"; foreseen by the waiver of {', '.join(item.foreseen)}" if item.foreseen else ""
        lines.append(Text(visible(f"✗ {place}: {item.file} ({item.where}, {item.form}){waived}"), style="red"))
    if len(run.residue) > _RESIDUE_SHOWN:
        lines.append(Text(f"and {len(run.residue) - _RESIDUE_SHOWN} more: see the report", style="red"))
    return Padding(Group(*lines), (1, 0, 0, 0))


def _proofs(run: RunView) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    proofs = run.proofs
    for label, path in (
        ("deletion log", proofs.deletion_log),
        ("attestation", proofs.attestation),
        ("report", proofs.report),
    ):
        if path:
            table.add_row(label, Text(visible(path)))
    return table
