"""Where the key is, on a terminal: dataset by dataset, the columns that find the person first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import Carries
from pii_tracer.model.key_location import (
    Held,
    HeldColumn,
    Standing,
    SubjectWhereabouts,
    Whereabouts,
)
from reports import wording
from reports.escape import visible

_STYLES = {Carries.UNKNOWN: "bold red", Carries.AGGREGATE: "yellow", Carries.NONE: "dim"}


def print_carriage(found: SubjectWhereabouts) -> None:
    """The table of one kind of subject, and in words what is unknown, mixed, bridged or aggregated."""
    console = Console(highlight=False)
    console.print(_headline(found))
    table = Table("table, and its columns", "found by", "holds", box=None, header_style="bold", pad_edge=False)
    table.columns[0].ratio = 1
    for one in found.datasets:
        table.add_row(_title(one), _by(one), "")
        for column in one.columns:
            table.add_row(Padding(_column(column), (0, 0, 0, 2)), "", _categories(column.holds))
    console.print(table)
    notes = [note for one in found.datasets for note in _notes(one)]
    if notes:
        console.print()
        for note in notes:
            console.print(note)


def print_witnesses(one: Whereabouts) -> None:
    """One dataset in full: every column, every category, and the edges that are the witness for it."""
    console = Console(highlight=False)
    console.print(Text.assemble((visible(one.table), "bold"), ": ", _by(one), " – ", visible(one.reason)))
    console.print(Text("lineage: " + visible(" → ".join(one.lineage)), style="dim"))
    for note in _notes(one):
        console.print(note)
    for column in one.columns:
        console.print()
        console.print(_column(column))
        for held in column.holds:
            console.print(Text.assemble("  ", _category(held), "" if held.path else " (declared on the source)"))
            for hop in held.path:
                told = f" = {hop.expression}" if hop.expression else ""
                console.print(Text(visible(f"    {hop.source} → {hop.target}{told}")))
                console.print(Text(visible(f"      {hop.kind}; {', '.join(hop.evidence[:3])}"), style="dim"))


def _headline(found: SubjectWhereabouts) -> Text:
    counts = Counter(one.carries for one in found.datasets[1:])
    parts = [f"{counts[carries]} {wording.CARRIES[carries]}" for carries in Carries if counts[carries]]
    many = counted(len(found.datasets) - 1, "dataset")
    return Text.assemble(
        (visible(found.subject), "bold"),
        visible(f": known from {found.source} by {found.key}; {many} downstream"),
        f" ({', '.join(parts)})" if parts else "",
    )


def _title(one: Whereabouts) -> Text:
    via = " → ".join(one.lineage[1:-1])
    return Text.assemble(
        (visible(one.table), "bold"), (visible(f"  through {via}"), "dim") if via else "", overflow="fold"
    )


def _by(one: Whereabouts) -> Text:
    return Text(wording.CARRIES[one.carries] + ("*" if one.mixed else ""), style=_STYLES.get(one.carries, ""))


def _column(column: HeldColumn) -> Text:
    """The column with what it is compared with; columns that are not used to find the person are dim."""
    name = Text(visible(column.name), overflow="fold")
    for number, finds in enumerate(column.finds):
        way, _, told = finds.rpartition(": ")
        text = f"{way} = {told}" if way else f" = {told}"
        if text != f" = {column.name}":
            name.append(visible((", " if number else "") + text))
    if not column.finds:
        name.stylize("dim")
    return name


def _categories(holds: Sequence[Held]) -> Text:
    return Text(", ").join(_category(held) for held in holds)


def _category(held: Held) -> Text:
    plain = held.standing is Standing.IDENTIFYING
    return Text(visible(held.category) + ("" if plain else f" ({held.standing})"), style="" if plain else "dim")


def _notes(one: Whereabouts) -> list[Text]:
    name = (visible(one.table), "bold")
    notes = []
    if one.bridge:
        notes.append(Text.assemble(name, visible(f": joined back to {one.bridge}, which knows whose row it is")))
    if one.mixed:
        columns = ", ".join(one.mixed)
        notes.append(
            Text.assemble(name, visible(f"*: a row can name several people ({columns}): rebuilt, not deleted from"))
        )
    if one.carries is Carries.AGGREGATE:
        notes.append(Text.assemble(name, visible(f": {one.reason}; {_sizes(one)}")))
    if one.carries is Carries.UNKNOWN:
        closes = f"; to close it: {one.closes}" if one.closes else ""
        notes.append(Text.assemble(name, (": unknown, ", "red"), visible(one.reason + closes)))
    if one.carries is Carries.NONE:
        notes.append(Text.assemble(name, visible(f": {one.reason}")))
    return notes


def _sizes(one: Whereabouts) -> str:
    sizes = one.groups
    if sizes is None:
        return "how small its groups are was not measured"
    alone = f"groups of one person only: {sizes.alone:,} of {sizes.groups:,}"
    return f"smallest group {counted(sizes.smallest, 'person')}, {alone}" if sizes.groups else "no groups"
