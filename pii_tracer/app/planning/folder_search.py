"""The files of an estate's tables and folders, all of them decoded and searched for the persons at planning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.planning.unmatched_rows.remaining_values import places
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.dataset_paths import FILE_NAMESPACE
from pii_tracer.lake.formats.plain_files.store_folder import Bare
from pii_tracer.lake.inventory import Inventory, InventoryGap, TableState
from pii_tracer.lake.stores.catalog_facts_of_table import NO_PLAIN_ROWS
from pii_tracer.model.datasets import DatasetId, Format, ShortNumbers
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import BEYOND_COLUMNS, SKIPPED_LINE
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import below
from pii_tracer.scan.folder_scan import scan_file, scan_tree
from pii_tracer.scan.hits import ROWS, FileScan, short_numbers
from pii_tracer.scan.search_workers import THREADS, Searchers
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import PATH, Digits, Evidence, FileHashes, Place, PlaceEvidence, Seen

Say = Callable[[str], None]
Located = Callable[[DatasetId], Path | None]
E = TypeVar("E", bound=PlaceEvidence)

_OTHER_FORMAT = "its catalog says that its files are {}, and they are {}: register it as what it is, then plan again"


def as_registered(opaque: str | None, registered: Format | None, look: Callable[[], Bare | str]) -> Bare | str:
    """A bare folder of a store whose files can be written again, or why they cannot. look: tells what lies there.

    opaque: the catalog's table there whose files are no plain rows. registered: the format that a catalog gives.
    """
    if opaque:
        return NO_PLAIN_ROWS.format(opaque)
    bare = look()
    if isinstance(bare, str) or registered in (None, bare.state.format):
        return bare
    return _OTHER_FORMAT.format(registered, bare.state.format)


def _as_named(dataset: DatasetId) -> Path | None:
    """Where a dataset lies, by its name alone."""
    return Path(dataset.name) if dataset.namespace == FILE_NAMESPACE and dataset.name.startswith("/") else None


def scan_estate(
    inventory: Inventory,
    patterns: Patterns,
    readings: Readings,
    say: Say,
    searchers: Searchers = THREADS,
    numbers: OtherNumbers | None = None,
    located: Located = _as_named,
) -> dict[str, Evidence]:
    """Decode every file of every table and folder, and the files outside of them, and look for the persons. located:
    where a dataset lies on this machine; without it, where its name says."""
    evidence, numbers = {}, numbers or OtherNumbers()
    places, known = sorted(s.location for s in inventory.tables), {s.dataset for s in inventory.tables}
    for state in inventory.tables:
        if state.remote:
            continue  # every version of every object there is searched (`pii_tracer.app.planning.s3_place_search`)
        say(f"looking for the persons in {state.table or state.location}")
        inside = [Path(place) for place in below(state.location, places)]
        unread = Evidence(0, 0, 0, unread=("its files cannot be searched",))
        look = partial(_search, state, inside, numbers.at(patterns, state.location), searchers, inventory.texts)
        evidence[state.location] = readings.table(state, look, unread)
    for gap in inventory.gaps:
        if gap.kind == GapKind.UNKNOWN_FILE:
            unread = Evidence(0, 0, 0, unread=("it cannot be searched",))
            lone = partial(_search_lone, Path(gap.evidence), patterns, inventory.texts)
            evidence[gap.evidence] = readings.of(gap.dataset, gap.evidence, lone, unread)
        elif folder := _unread_folder(gap, known, located):
            inside = [Path(place) for place in below(str(folder), places)]
            rest = partial(_search_folder, folder, inside, patterns, searchers, inventory.texts)
            unread = Evidence(0, 0, 0, unread=("its files cannot be searched",))
            evidence[gap.evidence] = readings.of(gap.dataset, gap.evidence, rest, unread)
    return evidence


def _unread_folder(gap: InventoryGap, known: Collection[DatasetId], located: Located) -> Path | None:
    """A folder on disk that is no table because something in it cannot be read: the rest of it may hold anybody. It is
    the whole dataset's, with every partition."""
    if gap.kind != GapKind.UNREADABLE or gap.dataset is None or gap.dataset in known:
        return None
    return folder if (folder := located(gap.dataset)) and folder.is_dir() else None


def _search_folder(
    folder: Path, inside: Sequence[Path], patterns: Patterns, searchers: Searchers, texts: TextPlaces
) -> Evidence:
    return evidence_of(scan_tree(folder, patterns, without=inside, searchers=searchers, texts=texts).files)


def _search(
    state: TableState, inside: Sequence[Path], patterns: Patterns, searchers: Searchers, texts: TextPlaces
) -> Evidence:
    root = Path(state.location)
    below_here = scan_tree(root, patterns, without=inside, searchers=searchers, texts=texts).files
    # files that the table reads from other folders hold its rows as well
    return evidence_of((*below_here, *(_scanned(Path(place), patterns, texts) for place in state.outside)))


def _search_lone(path: Path, patterns: Patterns, texts: TextPlaces) -> Evidence:
    return evidence_of([_scanned(path, patterns, texts)])


def _scanned(path: Path, patterns: Patterns, texts: TextPlaces) -> FileScan:
    return scan_file(path.parent, path.name, path, patterns, text=texts.of_path(path))


def evidence_of(files: Sequence[FileScan]) -> Evidence:
    """What the files of one location show."""
    return Evidence(
        files=len(files),
        files_with_person=sum(bool(file.hits) for file in files),
        bytes=sum(file.size for file in files if file.hits),
        strong=frozenset(hit.key_set for file in files for hit in file.strong),
        weak=frozenset(hit.column or hit.where for file in files for hit in file.weak),
        unread=tuple(f"{file.path}: {reason}" for file in files for reason in file.unread),
        places=places(files),
        digits=frozenset(Digits(h.key_set, h.column, h.where) for file in files for h in file.weak),
        seen=files_seen(files),
        numbers=numbers_seen(files),
        hashes=hashes_of(files),
        short=tuple(
            ShortNumbers(key_set=k, place=place, count=n) for (k, place), n in sorted(short_numbers(files).items())
        ),
    )


def files_seen(files: Iterable[FileScan]) -> frozenset[Seen]:
    """Those that hold a value which has to go with a step, and where in each one stands."""
    return frozenset(
        Seen(f.path, frozenset(hit.where for hit in f.hits)) for f in files if f.strong or _beside_columns(f)
    )


def numbers_seen(files: Iterable[FileScan]) -> frozenset[Place]:
    """Where among the rows of files short numbers stand."""
    return frozenset(
        Place(file.path, hit.key_set, hit.column, weak=True) for file in files for hit in file.weak if hit.where in ROWS
    )


def _beside_columns(file: FileScan) -> bool:
    """Whether what no step rewrites of a text holds a value, if only a short number."""
    return any(hit.where in (SKIPPED_LINE, BEYOND_COLUMNS) for hit in file.hits)


def seen_in(kind: type[E], scans: Sequence[FileScan], patterns: Patterns, root: str = "") -> E:
    """What the files of a place in a store show, whatever keeps them. root: what their names begin with."""
    return kind(
        files=len(scans),
        holders=sum(bool(scan.strong) for scan in scans),
        places=tuple(sorted({hit.column or hit.where for scan in scans for hit in scan.strong})),
        in_digits=sum(bool(scan.weak and not scan.strong) for scan in scans),
        unread=tuple(f"{root}{scan.path}: {patterns.mask(why)}" for scan in scans for why in scan.unread),
        strong=frozenset(hit.key_set for scan in scans for hit in scan.strong),
        telling=sum(any(hit.where == PATH for hit in scan.strong) for scan in scans),
        bytes=sum(scan.size for scan in scans if scan.hits),
        hashes=hashes_of(scans),
    )


def named_below(front: str, scans: Iterable[FileScan]) -> list[FileScan]:
    """Files of a place, each named by its path in it. front: what the names of all of them begin with."""
    return [scan.model_copy(update={"path": scan.path.removeprefix(front)}) for scan in scans]


def hashes_of(files: Iterable[FileScan]) -> FileHashes:
    """By their bytes, the files that hold the persons, and those that could not be read. Of bytes that nobody could
    fetch there is no mark."""
    known = [file for file in files if file.sha256]
    return FileHashes(
        holding=frozenset(file.sha256 for file in known if file.strong),
        unread=frozenset(file.sha256 for file in known if file.unread),
    )
