"""The inventory on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pii_tracer.inventory import Inventory, TableState
from reports.escape import visible


def print_inventory(inventory: Inventory, console: Console | None = None) -> None:
    """Tables and object sets, then what could not be found or read."""
    console = console or Console(highlight=False)
    table = Table("table", "format", "rows", "files", "bytes", "what keeps old data", box=None, header_style="bold")
    for column in (2, 3, 4):
        table.columns[column].justify = "right"
    for state in inventory.tables:
        rows = "" if state.rows is None else f"{state.rows:,}"
        name = state.table or state.location
        table.add_row(
            _text(name), state.format.value, rows, f"{state.files:,}", f"{state.bytes:,}", _text(_keeps(state))
        )
    for objects in inventory.objects:
        old = sum(not v.latest for v in objects.versions)
        kept = f"{old} noncurrent versions" if old else ""
        if objects.replica_of:
            kept = f"replica of {objects.replica_of}; {kept}".rstrip("; ")
        size = f"{sum(v.size for v in objects.versions):,}"
        table.add_row(_text(objects.location), "objects", "", f"{len(objects.versions):,}", size, _text(kept))
    console.print(table)
    for gap in inventory.gaps:
        console.print(Text.assemble(("gap ", "bold yellow"), visible(f"{gap.kind}: {gap.reason} ({gap.evidence})")))
    if not inventory.gaps:
        console.print("no gaps")


def _text(name: str) -> Text:
    return Text(visible(name), overflow="fold")


def _keeps(state: TableState) -> str:
    parts = [f"{state.versions} versions"] if state.versions > 1 else []
    parts += [f"{ref.kind.value} {ref.name}" for ref in state.refs]
    if state.deletion_vectors:
        parts.append("deletion vectors")
    if state.change_data_feed:
        parts.append("change data feed")
    if state.write_mode in ("merge-on-read", "mor"):
        parts.append("merge-on-read")
    if state.clone_of:
        parts.append(f"shallow clone of {state.clone_of}")
    if state.same_files_as:
        parts.append(f"same files as {state.same_files_as}")
    return ", ".join(parts)
