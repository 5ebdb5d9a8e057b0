"""The inventory on a terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.stores.hdfs.places import HdfsKind
from pii_tracer.model.gap_kinds import HDFS_PLACES, GapKind
from pii_tracer.model.gap_remedies import REMEDIES
from reports.escape import visible

_ANY_WIDTH = 100_000
_OF_PLACES = frozenset({*HDFS_PLACES, GapKind.OBJECT_PLACE})
_SEARCHED_BY_PLANS = (
    "nothing to do now: a plan searches the files, and has a step if it can erase the person there. Otherwise the "
    "plan's gap says why"
)


def print_inventory(inventory: Inventory, console: Console | None = None) -> None:
    """Tables and object sets, then what could not be found or read."""
    console = console or _console()
    table = Table("table", "format", "rows", "files", "bytes", "what keeps old data", box=None, header_style="bold")
    for column in (2, 3, 4):
        table.columns[column].justify = "right"
    beside = _beside(inventory)
    for state in inventory.tables:
        rows = "" if state.rows is None else f"{state.rows:,}"
        name = state.table or state.location
        told = beside.pop(state.location.rstrip("/"), None)
        where = f"in {state.location}" if told is not None and state.table else ""
        kept = "; ".join(filter(None, (_keeps(state), where, *(told or ()))))
        table.add_row(_text(name), state.format.value, rows, f"{state.files:,}", f"{state.bytes:,}", _text(kept))
    for objects in inventory.objects:
        if (told := beside.pop(objects.location.rstrip("/"), None)) is None:
            continue
        size = f"{sum(v.size for v in objects.versions):,}"
        count = f"{len(objects.versions):,}"
        table.add_row(_text(objects.location), "objects", "", count, size, _text("; ".join(dict.fromkeys(told))))
    for place in inventory.remote:
        if not place.unlisted and (told := beside.pop(str(place.location).rstrip("/"), None)) is not None:
            parts = [f"in S3, of {', '.join(place.tables)}" if place.tables else "in S3, of a root", *told]
            size, kind = f"{sum(v.size for v in place.versions):,}", place.format.value if place.format else "objects"
            count = f"{len(place.versions):,}"
            table.add_row(_text(str(place.location)), kind, "", count, size, _text("; ".join(parts)))
    for there in inventory.hdfs:
        size, count = f"{sum(file.size for file in there.files):,}", f"{len(there.files):,}"
        kind = there.format.value if there.format else there.kind.value
        name, kept = _named(there.sql_name, str(there.location), "in HDFS")
        table.add_row(_text(name), kind, "", count, size, _text(kept))
    for stored in inventory.object_places:
        size, count = f"{sum(version.size for version in stored.versions):,}", f"{len(stored.versions):,}"
        states = Counter(version.state.value.replace("_", "-") for version in stored.versions)
        kept = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        name, kept = _named(stored.sql_name, str(stored.location), kept)
        table.add_row(_text(name), "objects", "", count, size, _text(kept))
    for vault in inventory.vaults:
        size = f"{sum(a.size for a in vault.archives):,}"
        as_of = f"as of {vault.taken:%Y-%m-%d %H:%M} UTC"
        table.add_row(_text(vault.location), "vault", "", f"{len(vault.archives):,}", size, _text(as_of))
    for topic in inventory.topics:
        span = f"{sum(end - first for first, end in topic.offsets):,}"
        kept = topic.settings.get("cleanup.policy", "")
        if not topic.compacted:
            kept += f", {topic.settings.get('retention.ms', '?')} ms"
        partitions = f"{counted(len(topic.offsets), 'partition')}, {counted(topic.replicas, 'replica')}"
        table.add_row(_text(topic.location), "topic", f"≤ {span}", "", "", _text(f"{kept}; {partitions}"))
    for repository in inventory.lakefs:
        rules = repository.rules.told() + " days" if repository.rules else "no rules: all commits are retained"
        refs = (
            f"{counted(len(repository.branches), 'branch', 'branches')}, {counted(len(repository.tags), 'tag')},"
            f" {counted(len(repository.commits), 'commit')}"
        )
        size = f"{sum(o.size for o in repository.objects):,}"
        count = f"{len(repository.objects):,}"
        table.add_row(_text(repository.location), "lakeFS", "", count, size, _text(f"{refs}; {rules}"))
    console.print(table)
    said, open_ = set[str](), _decided_by_plans(inventory)
    for gap in inventory.gaps:
        console.print(Text.assemble(("gap ", "bold yellow"), visible(f"{gap.kind}: {gap.reason} ({gap.evidence})")))
        planned = gap.kind in _OF_PLACES and gap.evidence in open_
        advice = _SEARCHED_BY_PLANS if planned else f"to close it: {REMEDIES[gap.kind]}" if gap.kind in REMEDIES else ""
        if advice and advice not in said:
            console.print(Text(f"    {advice}"))
        said.add(advice)
    if not inventory.gaps:
        console.print("no gaps")


def _named(name: str | None, location: str, kept: str) -> tuple[str, str]:
    """What a place is called, and what is told of it: with a name also where it is."""
    return (name, "; ".join(filter(None, (f"in {location}", kept)))) if name else (location, kept)


def _decided_by_plans(inventory: Inventory) -> frozenset[str]:
    """Places in stores for which a plan has steps, unless its search finds something against them: not those of which
    the owner has to agree first, nor those that no step writes."""
    found = {str(place.location) for place in inventory.object_places if not place.untreated}
    for there in inventory.hdfs:
        asks = there.kind in (HdfsKind.SNAPSHOT, HdfsKind.TEMPORARY) and not there.agreed
        if not (asks or there.untreated or there.opaque or there.encrypted or there.striped):
            found.add(str(there.location))
    return frozenset(found)


def _console() -> Console:
    """In a pipe, lines are as long as they have to be: whoever searches them finds whole names."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_ANY_WIDTH)


def _beside(inventory: Inventory) -> dict[str, list[str]]:
    """What keeps old data in places of S3, by place: one line says all of a place, whatever the inventory has of it."""
    found: dict[str, list[str]] = {}
    for objects in inventory.objects:
        old = sum(not v.latest for v in objects.versions)
        kept = counted(old, "noncurrent version") if old else ""
        if objects.replica_of:
            kept = f"replica of {objects.replica_of}; {kept}".rstrip("; ")
        told = (objects.default_retention and f"new objects locked: {objects.default_retention}", *objects.cold_tiers)
        parts = [part for part in (kept, *told, *objects.named_in) if part]
        found.setdefault(objects.location.rstrip("/"), []).extend(parts)
    for place in inventory.remote:
        if not place.unlisted:
            old = sum(not v.latest for v in place.versions)
            parts = [counted(old, "noncurrent version")] if old else []
            parts += [counted(len(place.uploads), "unfinished upload")] if place.uploads else []
            known = found.setdefault(str(place.location).rstrip("/"), [])
            known += [part for part in parts if part not in known]
    return found


def _text(name: str) -> Text:
    return Text(visible(name), overflow="fold")


def _keeps(state: TableState) -> str:
    parts = [counted(state.versions, "version")] if state.versions > 1 else []
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
    parts += [f"{counted(len(o.files), 'file')} shared with {o.table or o.location}" for o in state.sharing]
    return ", ".join(parts)
