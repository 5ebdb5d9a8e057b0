"""Places in HDFS as planning reads them: every file is searched, and what that showed is told."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Sequence
from functools import partial

from pii_tracer.common.parallel_map import several
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.discovery import places_in_hdfs
from pii_tracer.lake.stores.hdfs.places import HdfsFile, HdfsKind
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs, client_at
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation, hdfs_location, is_hdfs
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.referenced_files import named_files
from pii_tracer.scan.value_forms import Patterns
from planners.copies.scan_evidence import HdfsEvidence

_CHUNK = 16 * 1024 * 1024
_OPEN = "somebody writes it: end its writer (`hdfs debug recoverLease -path …` where that is gone), then plan again"
_OTHER = "it was written, or replaced, while it was read: plan again when nothing writes there"


def search_hdfs(
    inventory: Inventory, estate: Estate, patterns: Patterns, short: bool, say: Callable[[str], None]
) -> dict[str, HdfsEvidence]:
    """Search every place in HDFS. short: whether a short number is looked for."""
    wanted = places_in_hdfs(estate)
    found = {}
    for place in inventory.hdfs:
        say(f"looking for the persons in {patterns.mask(str(place.location))}: {len(place.files):,} files")
        kept = place.kind is HdfsKind.SNAPSHOT  # nothing in it is ever written
        look = partial(_look, client_at(estate, place.location), patterns, wanted, kept)
        found[str(place.location)] = _told(list(several(look, place.files)), short, patterns)
    return found


def _look(
    client: WebHdfs, patterns: Patterns, wanted: Sequence[HdfsLocation], kept: bool, file: HdfsFile
) -> tuple[FileScan, int]:
    """One file, and how many files it names that lie in no place of the estate."""
    name = file.path.lstrip("/")
    if name.endswith("/"):
        return scan_bytes(name, b"", patterns), 0
    try:
        data = _fetch(client, file, kept)
    except (EstateError, OSError) as error:
        why = error.what if isinstance(error, EstateError) else f"it cannot be kept for reading: {error.strerror}"
        scan = scan_bytes(name, b"", patterns)
        return scan.model_copy(update={"unread": (why,)}), 0
    scan = scan_bytes(name, data, patterns)
    try:
        return scan, sum(not _covered(client, one, wanted) for one in set(named_files(name, data)))
    except Exception as error:  # decoders of many families
        why = f"which files it names cannot be told ({type(error).__name__})"
        return scan.model_copy(update={"unread": (*scan.unread, why)}), 0


def _fetch(client: WebHdfs, file: HdfsFile, kept: bool) -> memoryview:
    """The bytes of a file, in a file without a name here.

    Raises:
        EstateError: refused, gone, another one than was listed, or open for writing.
    """
    if not kept and client.is_open(file.path):
        raise EstateError(_OPEN)
    with tempfile.TemporaryFile() as held:
        for first in range(0, file.size, _CHUNK):
            held.write(client.read(file.path, first, min(_CHUNK, file.size - first)))
        now = client.status(file.path)
        if (now.file_id, now.size, now.modified) != (file.file_id, file.size, file.modified):
            raise EstateError(_OTHER)
        if held.tell() != file.size:
            raise StoreError("its bytes broke off", "Cut", where=client.name)
        held.flush()
        return memoryview(mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ)) if file.size else memoryview(b"")


def _covered(client: WebHdfs, name: str, wanted: Sequence[HdfsLocation]) -> bool:
    """Whether a file that metadata names lies in a place of the estate in HDFS. A path alone is one of its own."""
    text = f"{client.name}{name}" if name.startswith("/") else name
    try:
        return is_hdfs(text) and any(place.holds(hdfs_location(text)) for place in wanted)
    except EstateError:
        return False


def _told(looked: Sequence[tuple[FileScan, int]], short: bool, patterns: Patterns) -> HdfsEvidence:
    scans = [scan for scan, _ in looked]
    return HdfsEvidence(
        files=sum(not scan.path.endswith("/") for scan in scans),
        holders=sum(bool(scan.strong) for scan in scans),
        places=tuple(sorted({hit.column or hit.where for scan in scans for hit in scan.strong})),
        in_digits=sum(bool(scan.weak and not scan.strong) for scan in scans),
        short=short,
        unread=tuple(f"/{scan.path}: {patterns.mask(why)}" for scan in scans for why in scan.unread),
        beyond=sum(beyond for _, beyond in looked),
    )
