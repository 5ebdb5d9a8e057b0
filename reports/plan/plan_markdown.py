"""The plan for a pull request: GitHub-flavoured Markdown within a byte budget.

The order is the reviewer's: verdict, protections set aside, gaps, irreversible acts, then copies, and at the end the
dates and the exact commands. What does not fit is cut from the middle, and the text says so; the verdict, the list of
blocking gaps and the commands always stay. A comment on GitHub holds 65,536 characters; the default budget leaves room
around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import UsageError
from pii_tracer.model.plan import ErasurePlan, Gap, Step
from reports import wording
from reports.escape import markdown, markdown_code, visible
from reports.lineage.layered_drawing import shorten
from reports.lineage.plan_lineage_picture import Edges, copy_edges
from reports.plan.plan_view import CopyRow, PlanView, Task, Verdict

BUDGET = 60_000
LEAST_BUDGET = 20_000
MERMAID_NODES = 60
_SIGNS = {
    Verdict.READY: "✅",
    Verdict.NOT_APPLYABLE: "⚠️",
    Verdict.PARTIAL: "⚠️",
    Verdict.LATE: "❌",
    Verdict.INCOMPLETE: "❌",
}
_NAME_LETTERS, _TEXT_LETTERS = 160, 500
_SHORTEST = len("- request , (), received , deadline ")
"""No line about a request has fewer bytes."""
# shares of the budget that the lists above the fold may take, so that the copies and the commands keep their room
_SHARE_ABOVE = 0.12
# of the gaps that block, which are never cut; and of each other list where these need more than a list's share
_SHARE_OF_GAPS, _SHARE_BESIDE_GAPS = 0.5, 0.05
_CUT = "*… and {more} more: `pii-tracer show` lists everything.*"
_GAPS = "### Gaps that block this plan"
_SHORTENED = "*Not every reason had room here: `pii-tracer show` lists them all.*"


def render_plan_markdown(
    plan: ErasurePlan, *, plan_file: str, options: Sequence[str] = (), edges: Edges = (), budget: int = BUDGET
) -> str:
    """Markdown of at most `budget` bytes of UTF-8.

    plan_file, options: as the user would type them. edges: (source, target) dataset names, as for the HTML page.

    Raises:
        UsageError: the budget is below `LEAST_BUDGET`, or the path of the plan is so long that nothing else fits.
    """
    if budget < LEAST_BUDGET:
        raise UsageError(
            f"the plan does not fit in {budget} bytes", todo=f"give a budget of at least {LEAST_BUDGET} bytes"
        )
    view = PlanView(plan)
    above = int(budget * _SHARE_ABOVE)
    blocking = _blocking(view, int(budget * _SHARE_OF_GAPS))
    if _bytes(_joined(blocking)) > above:
        above = int(budget * _SHARE_BESIDE_GAPS)
    head = [_verdict(view, above)]
    head += _listed(
        "Protections set aside", [f"- **{_text(o.kind)}**: {_text(o.reason)}" for o in plan.overrides], above
    )
    head += blocking
    head += _listed("Left out, not erased", [f"- {_name(str(gap.dataset))}" for gap in view.left_out], above)
    head += _listed("Kept, not erased", _kept(view), above)
    title = f"Cannot be undone: {plan.totals.irreversible:,} of {counted(plan.totals.steps, 'step')}"
    head += _listed(title, _acts(view), above)
    head += _listed("Gaps waived", [_gap(gap, view) for gap in view.waived_gaps], above)
    head += _listed("Done by people, who confirm it", [_task(task) for task in view.tasks], above)
    tail = [*_schedules(view, above // 2), _commands(view, plan_file, options)]
    room = budget - _bytes(_joined(head)) - _bytes(_joined(tail)) - 200
    middle = _middle(view, edges, room)
    text = _joined([*head, *middle, *tail]) + "\n"
    if _bytes(text) > budget:
        raise UsageError("the name and path of the plan are too long for this budget", todo="give a shorter path")
    return text


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(block for block in blocks if block)


def _bytes(text: str) -> int:
    return len(text.encode())


def _text(text: str) -> str:
    return markdown(shorten(visible(text), _TEXT_LETTERS))


def _name(name: str) -> str:
    return markdown_code(shorten(visible(name), _NAME_LETTERS))


def _fitting(lines: Sequence[str], room: int, number: int | None = None) -> list[str]:
    """As many lines as fit; if not all do, a last line that says how many are missing. number: how many there are,
    where not all of them were made."""
    cost = [_bytes(line) + 1 for line in lines]
    number = len(lines) if number is None else number
    if sum(cost) <= room and number == len(lines):
        return list(lines)
    kept, room = 0, room - _bytes(_CUT) - 8
    while kept < len(lines) and cost[kept] <= room:
        room -= cost[kept]
        kept += 1
    return [*lines[:kept], "", _CUT.format(more=f"{number - kept:,}")]


def _listed(title: str, lines: Sequence[str], room: int) -> list[str]:
    return [f"### {title}", "\n".join(_fitting(lines, room))] if lines else []


def _verdict(view: PlanView, room: int) -> str:
    plan = view.plan
    requests = [
        f"- request {_name(item.id)}, {_text(item.law)} ({_text(item.citation)}),"
        f" received {wording.day(item.received)}, deadline **{wording.minute(item.deadline)}**"
        + (f", extended: informed on {wording.day(item.extended)}" if item.extended else "")
        + (f", notice runs until **{wording.minute(item.not_before)}**" if item.not_before else "")
        for item in plan.requests[: room // _SHORTEST + 1]
    ]
    return _joined(
        (
            f"## {_SIGNS[view.verdict]} {view.headline}",
            "**" + " · ".join(map(_text, view.numbers)) + "**",
            f"Plan {_name(plan.plan_id)} for estate {_name(plan.estate)}, retention {_name(plan.retention)},"
            f" made {wording.minute(plan.created_at)}",
            "\n".join(_fitting(requests, room, len(plan.requests))),
        )
    )


def _blocking(view: PlanView, room: int) -> list[str]:
    """Every gap that blocks: with its reason where there is room, else by id, kind and place alone.

    Where not even these fit, all are counted by their kinds.
    """
    gaps = view.open_gaps
    if not gaps:
        return []
    lines = [_short_gap(gap) for gap in gaps]
    spare = room - sum(_bytes(line) + 1 for line in lines) - _bytes(_SHORTENED) - 8
    if spare < 0:
        kinds = sorted(Counter(gap.kind for gap in gaps).items())
        lines = [f"- **{count:,}** × {_text(kind)}" for kind, count in kinds]
        return [_GAPS, "\n".join([*lines, "", f"*{counted(len(gaps), 'gap')} in all: `pii-tracer show` names each.*"])]
    shortened = False
    for index, gap in enumerate(gaps):
        whole = _gap(gap, view)
        more = _bytes(whole) - _bytes(lines[index])
        if more > spare:
            shortened = True
            continue
        lines[index], spare = whole, spare - more
    return [_GAPS, "\n".join([*lines, *(["", _SHORTENED] if shortened else [])])]


def _short_gap(gap: Gap) -> str:
    where = f" {_name(str(gap.dataset))}" if gap.dataset else ""
    return f"- **{_text(gap.id)}** {_text(gap.kind)}{where}"


def _gap(gap: Gap, view: PlanView) -> str:
    line = f"{_short_gap(gap)}: {_text(gap.reason)} (evidence: {_text(gap.evidence)})"
    if remedy := view.remedies.get(gap.id):
        line += f". To close it: {_text(remedy)}"
    if gap.waiver is None and gap.seen:
        line += f". A waiver of this gap contains {_name(f'of: {gap.seen}')}"
    if gap.waiver:
        line += f" — waived by {_text(gap.waiver.who)} until {wording.day(gap.waiver.until)}: {_text(gap.waiver.why)}"
    return line


def _task(task: Task) -> str:
    return (
        f"- **{_text(task.owner)}**: {_text(task.act)} ({_text(task.when)}), {_name(f'pii-tracer confirm {task.step}')}"
    )


def _kept(view: PlanView) -> list[str]:
    lines = []
    for item in view.kept:
        more = f" and {len(item.names) - 8} more" if len(item.names) > 8 else ""
        where = ", ".join(_name(name) for name in item.names[:8])
        lines.append(f"- **{_text(item.hold.id)}** {where}{more}: {_text('; '.join((item.why, *item.rest[:8])))}")
    return [f"- **{view.recheck}**", *lines] if lines else []


def _acts(view: PlanView) -> list[str]:
    return [
        f"- **{act.count:,}** × {_text(act.action)}: "
        + ", ".join(_name(name) for name in act.names[:8])
        + (f" and {len(act.names) - 8} more" if len(act.names) > 8 else "")
        for act in view.acts
    ]


def _middle(view: PlanView, edges: Edges, room: int) -> list[str]:
    """Copies as a table, the picture, details, examined: in this order for as long as there is room."""
    blocks = ["### Copies", *_table(view, int(room * 0.45))]
    room -= _bytes(_joined(blocks))
    picture = _mermaid(view, edges)
    if picture and _bytes(picture) < room // 2:
        blocks.append(picture)
        room -= _bytes(picture) + 2
    examined = _examined(view, room // 4)
    room -= _bytes(_joined(examined))
    details = _details(view, room)
    return [*blocks, *details, *examined]


def _table(view: PlanView, room: int) -> list[str]:
    header = (
        "| # | Copy | Kind | Format | Carries | Strategy | Rows | Steps | Hazards |\n"
        "| ---: | :--- | :--- | :--- | :--- | :--- | ---: | ---: | :--- |\n"
    )
    return [header + "\n".join(_fitting([_row(row) for row in view.rows], room - _bytes(header)))]


def _row(row: CopyRow) -> str:
    indent = "&emsp;" * (min(row.depth, 3) - 1) + "↳ " if row.depth else ""
    cells = (
        row.number,
        f"{indent}{_name(row.name)}",
        row.kind,
        str(row.copy.format),
        row.carries,
        row.strategy,
        wording.number(row.rows),
        str(len(row.steps)),
        _text(" ".join(row.hazards)),
    )
    return "| " + " | ".join(cells) + " |"


def _mermaid(view: PlanView, edges: Edges) -> str:
    rows = [row for row in view.rows if row.depth == 0]
    if not 1 < len(rows) <= MERMAID_NODES:
        return ""
    ids = {row.copy.id: f"n{index}" for index, row in enumerate(rows)}
    lines = [f'  {ids[row.copy.id]}["{_mermaid_text(row.name)}<br/>{row.strategy}"]' for row in rows]
    lines += [f"  {ids[a]} --> {ids[b]}" for a, b in copy_edges(view, edges)]
    drawing = "```mermaid\nflowchart LR\n" + "\n".join(lines) + "\n```"
    return f"<details><summary>Where the person went</summary>\n\n{drawing}\n\n</details>"


def _mermaid_text(name: str) -> str:
    """Everything but plain letters as Mermaid's entity codes (`#35;`), so that no name can end its label."""
    shown = shorten(visible(name), 60)
    return "".join(char if char.isalnum() or char in " ./_:" else f"#{ord(char)};" for char in shown)


def _details(view: PlanView, room: int) -> list[str]:
    blocks: list[str] = []
    room -= 120
    for index, row in enumerate(view.rows):
        block = _detail(row)
        if _bytes(block) + 2 > room:
            left = len(view.rows) - index
            blocks.append(
                f"*Details of {counted(left, 'copy', 'copies')} do not fit here: `pii-tracer show` lists them.*"
            )
            break
        blocks.append(block)
        room -= _bytes(block) + 2
    return blocks


def _detail(row: CopyRow) -> str:
    copy = row.copy
    summary = (
        f"{row.number or '↳'} {_name(row.name)} · {row.kind} · {counted(len(row.steps), 'step')},"
        f" {row.irreversible} irreversible"
    )
    columns = ", ".join(f"{_name(column.name)} ({_text(column.category)})" for column in copy.columns)
    facts = [f"Here because: {_text(copy.reason)}"]
    if columns:
        facts.append(f"Columns: {columns}")
    if copy.lineage:
        facts.append("Lineage: " + " → ".join(_name(hop) for hop in copy.lineage))
    steps = ""
    if row.steps:
        lines = [_step(step) for step in row.steps]
        steps = (
            "| Step | Act | Earliest start | Latest start | Why |\n| :--- | :--- | :--- | :--- | :--- |\n"
            + "\n".join(lines)
        )
    body = _joined((" <br>\n".join(facts), steps))
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _step(step: Step) -> str:
    act = _text(step.action.replace("_", " ")) + (" **irreversible**" if step.irreversible else "")
    hazards = f" ({_text(' '.join(step.hazards))})" if step.hazards else ""
    start, latest = wording.minute(step.earliest_start), wording.minute(step.latest_start)
    return f"| {_name(step.id)} | {act}{hazards} | {start} | {latest} | {_text(step.reason)} |"


def _examined(view: PlanView, room: int) -> list[str]:
    lines = [
        f"- {_name(wording.short_name(item.table, item.dataset.name))}"
        f" ({wording.CARRIES[item.carries]}): {_text(item.reason)}"
        for item in view.examined
    ]
    if not lines:
        return []
    count = counted(len(lines), "dataset")
    inside = "\n".join(_fitting(lines, room - 100))
    return [f"<details><summary>Examined, no copy: {count}</summary>\n\n{inside}\n\n</details>"]


def _schedules(view: PlanView, room: int) -> list[str]:
    lines = []
    for item in view.plan.schedules:
        mark = "✅" if item.meets_deadline else "❌"
        planned = " (this plan)" if item.retention == view.plan.retention else ""
        notes = "; ".join(_text(note) for note in item.notes)
        lines.append(
            f"- {mark} {_name(item.retention)}{planned}: done by {wording.day(item.finish)},"
            f" {wording.slack(item.slack_days)}, {_text(wording.money(item.cost, view.plan.totals.currency))}"
            + (f". {notes}" if notes else "")
        )
    return _listed("Schedule", lines, room)


def _commands(view: PlanView, plan_file: str, options: Sequence[str]) -> str:
    """Commands in a fence longer than any run of backticks in them."""
    lines = [f"{visible(command)}  # {purpose}" for command, purpose in view.commands(plan_file, options)]
    text = "\n".join(lines)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"### Next\n\n{fence}sh\n{text}\n{fence}"
