"""The plan on a terminal: the verdict first, then what a reviewer must not miss, then every copy."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pii_tracer.common.plurals import counted
from pii_tracer.model.plan import ErasurePlan, Gap
from reports import wording
from reports.escape import visible
from reports.plan.plan_view import (
    CopyRow,
    Kept,
    PlanView,
    Task,
    Verdict,
)

_COLOURS = {
    Verdict.READY: "green",
    Verdict.NOT_APPLYABLE: "yellow",
    Verdict.PARTIAL: "yellow",
    Verdict.LATE: "red",
    Verdict.INCOMPLETE: "red",
}
_WIDE = 132
_NAMES_SHOWN = 6


def print_plan(plan: ErasurePlan, console: Console, *, plan_file: str, options: Sequence[str] = ()) -> None:
    """Print the plan for a reviewer.

    Colour is the console's business (rich obeys NO_COLOR and dumb terminals).
    plan_file, options: as the user would type them (see `PlanView.commands`).
    """
    console.print(render_plan(plan, width=console.width, plan_file=plan_file, options=options), soft_wrap=False)


def render_plan(plan: ErasurePlan, *, width: int, plan_file: str, options: Sequence[str] = ()) -> RenderableType:
    """The same as a rich renderable, for a console of `width` columns."""
    view = PlanView(plan)
    parts: list[RenderableType] = [_verdict(view, width)]
    if plan.overrides:
        parts.append(_section("Protections set aside", [_override(item.kind, item.reason) for item in plan.overrides]))
    if view.open_gaps:
        parts.append(_section("Gaps that block this plan", [_gap(gap, view) for gap in view.open_gaps]))
    if view.left_out:
        parts.append(_section("Left out, not erased", [_left_out(view)]))
    if view.kept:
        parts.append(
            _section("Kept, not erased", [*(_kept(item) for item in view.kept), _line(view.recheck, "yellow")])
        )
    if view.acts:
        title = f"Cannot be undone: {plan.totals.irreversible:,} of {counted(plan.totals.steps, 'step')}"
        parts.append(_section(title, [_acts(view, shown=_NAMES_SHOWN if width >= _WIDE else 2)]))
    if view.waived_gaps:
        parts.append(_section("Gaps waived", [_gap(gap, view) for gap in view.waived_gaps]))
    if view.tasks:
        parts.append(_section("Done by people, who confirm it", [_task(task) for task in view.tasks]))
    copies = _copies_wide(view) if width >= _WIDE else _copies_narrow(view)
    parts.append(_section("Copies", [copies]))
    if view.examined:
        parts.append(_section("Examined, no copy", [_examined(view)]))
    if plan.schedules:
        parts.append(_section("Schedule", [_schedules(view), *_schedule_notes(view)]))
    parts.append(_section("Next", _commands(view, plan_file, options)))
    return Group(*parts)


_MOST_REQUESTS = 20


def _line(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _section(title: str, content: list[RenderableType]) -> RenderableType:
    return Padding(Group(Text(title, style="bold"), Padding(Group(*content), (0, 0, 0, 2))), (1, 0, 0, 0))


def _verdict(view: PlanView, width: int) -> RenderableType:
    plan, colour = view.plan, _COLOURS[view.verdict]
    lines: list[RenderableType] = [Text(view.headline, style=f"bold {colour}"), *_numbers(view, width - 6)]
    for request in plan.requests[:_MOST_REQUESTS]:
        lines.append(_line(f"request {request.id} · {request.law} · received {wording.day(request.received)}", "dim"))
        longer = f", extended: the person was informed on {wording.day(request.extended)}" if request.extended else ""
        lines.append(_line(f"deadline {wording.minute(request.deadline)}{longer}", "dim"))
        if request.not_before:
            lines.append(_line(f"nothing begins before {wording.minute(request.not_before)}: a notice runs", "dim"))
    if more := len(plan.requests[_MOST_REQUESTS:]):
        lines.append(_line(f"{counted(more, 'more request')}; the HTML report lists them", "dim"))
    title = Text(f"Erasure plan {visible(plan.plan_id)} · {visible(plan.estate)}")
    return Panel(Group(*lines), title=title, title_align="left", border_style=colour, box=box.ROUNDED, padding=(0, 2))


def _numbers(view: PlanView, width: int) -> list[Text]:
    """The numbers in as few lines as fit; a line never breaks inside a phrase."""
    lines: list[Text] = []
    for part in view.numbers:
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1].append(" · ", style="dim").append(part, style="bold")
        else:
            lines.append(Text(part, style="bold"))
    return lines


def _override(kind: str, reason: str) -> Text:
    return Text.assemble(("! ", "bold red"), (visible(kind), "bold"), ("  ", ""), visible(reason))


def _gap(gap: Gap, view: PlanView) -> RenderableType:
    mark = ("✗ ", "bold red") if gap.waiver is None else ("~ ", "yellow")
    where = f"  {gap.dataset}" if gap.dataset else ""
    title = Text.assemble(mark, (visible(gap.id), "bold"), f"  {visible(gap.kind)}", visible(where))
    lines = [_line(gap.reason), _line(f"evidence: {gap.evidence}", "dim")]
    if remedy := view.remedies.get(gap.id):
        lines.append(_line(f"to close it: {remedy}"))
    if gap.waiver is None and gap.seen:
        lines.append(_line(f"a waiver of this gap contains: of: {gap.seen}", "dim"))
    if gap.waiver:
        waiver = gap.waiver
        lines.append(_line(f"waived by {waiver.who} until {wording.day(waiver.until)}: {waiver.why}", "yellow"))
    return Group(title, Padding(Group(*lines), (0, 0, 0, 2)))


def _task(task: Task) -> RenderableType:
    title = Text.assemble(("✍ ", "bold yellow"), (visible(task.owner), "bold"), f"  {visible(task.act)}")
    lines = [_line(task.when), _line(f"pii-tracer confirm {task.step}", "dim")]
    return Group(title, Padding(Group(*lines), (0, 0, 0, 2)))


def _left_out(view: PlanView) -> RenderableType:
    shown = 2 * _NAMES_SHOWN
    lines = [_line(str(gap.dataset), "yellow") for gap in view.left_out[:shown]]
    more = len(view.left_out) - shown
    return Group(*lines, *([_line(f"and {more} more", "yellow")] if more > 0 else ()))


def _kept(kept: Kept) -> RenderableType:
    names = ", ".join(kept.names[:_NAMES_SHOWN])
    more = len(kept.names) - _NAMES_SHOWN
    where = names + (f" and {more} more" if more > 0 else "")
    title = Text.assemble(("§ ", "bold yellow"), (visible(kept.hold.id), "bold"), f"  {visible(where)}")
    lines = [_line(kept.why), *(_line(line, "dim") for line in kept.rest)]
    return Group(title, Padding(Group(*lines), (0, 0, 0, 2)))


def _acts(view: PlanView, shown: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    for act in view.acts:
        more = len(act.names) - shown
        names = ", ".join(visible(name) for name in act.names[:shown]) + (f" and {more} more" if more > 0 else "")
        table.add_row(str(act.count), Text(act.action), Text(names))
    return table


def _name(row: CopyRow) -> Text:
    return Text("  " * (row.depth - 1) + "↳ " if row.depth else "", style="dim").append(
        visible(row.name), style="" if row.depth else "not dim bold"
    )


def _headed() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0), show_edge=False)


def _copies_wide(view: PlanView) -> Table:
    table = _headed()
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("dataset", overflow="fold")
    table.add_column("format", no_wrap=True)
    table.add_column("carries", no_wrap=True)
    table.add_column("strategy", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("hazards", style="dim", overflow="fold")
    for row in view.rows:
        table.add_row(
            row.number,
            Text(row.kind),
            _name(row),
            Text(row.copy.format),
            Text(row.carries),
            Text(row.strategy),
            wording.number(row.rows),
            wording.number(len(row.steps)),
            _line(" ".join(row.hazards)),
        )
    return table


def _copies_narrow(view: PlanView) -> Table:
    table = _headed()
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("dataset", overflow="fold", ratio=1)
    table.add_column("strategy", overflow="fold", max_width=34)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    for row in view.rows:
        indent = "  " * row.depth
        facts = Text(f"{indent}{row.kind} · {row.copy.format} · {row.carries}", style="dim")
        table.add_row(
            row.number,
            Group(_name(row), facts),
            Group(Text(row.strategy), _line(" ".join(row.hazards), "dim")),
            wording.number(row.rows),
            wording.number(len(row.steps)),
        )
    return table


def _examined(view: PlanView) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold", style="dim")
    for item in view.examined:
        name = wording.short_name(item.table, item.dataset.name)
        table.add_row(_line(name), Text(wording.CARRIES[item.carries]), _line(item.reason))
    return table


def _schedules(view: PlanView) -> Table:
    table = _headed()
    table.add_column("retention", no_wrap=True)
    table.add_column("done by", no_wrap=True)
    table.add_column("against the deadline", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    for item in view.plan.schedules:
        planned = item.retention == view.plan.retention
        label = _line(item.retention, "bold" if planned else "").append(" (this plan)" if planned else "", style="dim")
        table.add_row(
            label,
            wording.day(item.finish),
            Text(wording.slack(item.slack_days), style="green" if item.meets_deadline else "bold red"),
            wording.money(item.cost, view.plan.totals.currency),
        )
    return table


def _schedule_notes(view: PlanView) -> list[RenderableType]:
    return [_line(f"{item.retention}: {note}", "dim") for item in view.plan.schedules for note in item.notes]


def _commands(view: PlanView, plan_file: str, options: Sequence[str]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for command, purpose in view.commands(plan_file, options):
        lines += [Text(f"# {purpose}", style="dim"), _line(command, "bold cyan")]
    return lines
