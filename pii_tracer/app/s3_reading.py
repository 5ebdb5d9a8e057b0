"""Tables in S3 as a run, its witness and the verifier look at them: all in their folders, old versions included."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

from pii_tracer.app.aws_refusals import unreadable
from pii_tracer.common.parallel_map import several
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.object_versions import NULL, region_of
from pii_tracer.lake.stores.s3.version_bytes import fetch
from pii_tracer.model.errors import EstateError, ScanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import searched_text_of
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.locations import S3Location, object_prefix, s3_place
from pii_tracer.model.non_key_columns import no_keys_at
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.model.waivers import MarkKey
from pii_tracer.proof.storage_change_witness import FileBefore, Seen, in_log
from pii_tracer.scan.search_workers import THREADS, Searchers
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.short_numbers import ShortNumbersThen, short_numbers_then
from pii_tracer.verify.stores.s3.s3_objects import S3Folder, look_past_s3, verify_s3_table
from pii_tracer.verify.verdicts import ByteVerdict
from pii_tracer.verify.waived_files import NOTHING_WAIVED, WaivedFiles, waived_files

_REACH = "make the bucket reachable, then verify again"


def look(
    estate: Estate, copy: Copy, place: S3Location, patterns: Patterns, searchers: Searchers = THREADS
) -> ByteVerdict:
    """The verdict on a table's bytes. place: where it lies.

    Raises:
        EstateError: the estate file does not say how S3 is reached.
    """
    return verify_s3_table(copy, patterns, _folder(estate, copy, place), searchers)


def changed(estate: Estate, copy: Copy, place: S3Location, verdict: ByteVerdict, patterns: Patterns) -> bool:
    """Whether other versions lie there than the verdict is about. A version `null` can be written over unseen.

    Raises:
        EstateError, ScanError: they cannot be listed any more.
    """
    folder = _folder(estate, copy, place)
    with _listed(place):
        names = {folder.named(version, patterns) for version in folder.versions()}
        begun = any(True for _ in folder.uploads())
    return begun or names != {file.path for file in verdict.files} or any(n.endswith(f"={NULL}") for n in names)


def listing(estate: Estate, copy: Copy, place: S3Location, patterns: Patterns) -> Seen:
    """Names and sizes of all versions, and the digest of the newest file of its log: nothing else is read.

    Raises:
        EstateError, ScanError: refused.
    """
    folder = _folder(estate, copy, place)
    files: dict[str, int] = {}
    last, newest = ("", ""), None
    with _listed(place):
        for version in folder.versions():
            files[folder.named(version, patterns)] = version.size
            order = in_log(folder.relative(version.key), copy.format)
            if order is not None and order > last and version.latest and not version.delete_marker:
                last, newest = order, version
    if newest is None:
        return Seen(files)
    data, _ = fetch(folder.client, place.bucket, newest)
    return Seen(files, f"sha256:{hashlib.sha256(data).hexdigest()}")


def written(
    estate: Estate, copy: Copy, place: S3Location, patterns: Patterns
) -> Iterator[tuple[str, ObjectVersion, memoryview]]:
    """Every version that has bytes, old ones included, with its name in verdicts, and its bytes.

    Raises:
        EstateError, ScanError: refused.
    """
    folder = _folder(estate, copy, place)
    with _listed(place):
        for version in folder.versions():
            if version.size and not version.delete_marker:
                yield folder.named(version, patterns), version, fetch(folder.client, place.bucket, version)[0]


def is_empty(estate: Estate, copy: Copy, place: S3Location) -> bool:
    """Whether nothing at all lies there: no version, no marker, no unfinished upload.

    Raises:
        EstateError, ScanError: refused.
    """
    folder = _folder(estate, copy, place)
    with _listed(place):
        return not any(True for _ in folder.versions()) and not any(True for _ in folder.uploads())


def hashed(
    estate: Estate, copy: Copy, place: S3Location, patterns: Patterns, *, old: bool, known: Iterable[str] = ()
) -> Iterator[FileBefore]:
    """Every version with the digest of its bytes, unknown where it cannot be read. old: those that are not current.

    known: names of those that are not looked at again.

    Raises:
        EstateError, ScanError: refused.
    """
    folder, names = _folder(estate, copy, place), frozenset(known)
    with _listed(place):
        # a delete marker that is current goes with the versions behind it
        wanted = (v for v in folder.versions() if not old or not v.latest or v.delete_marker)
        waiting = (v for v in wanted if v.version_id == NULL or folder.named(v, patterns) not in names)
        yield from several(partial(_before, folder, patterns), waiting)


def _before(folder: S3Folder, patterns: Patterns, version: ObjectVersion) -> FileBefore:
    return FileBefore(path=folder.named(version, patterns), size=version.size, sha256=_digest(folder, version))


def _digest(folder: S3Folder, version: ObjectVersion) -> str | None:
    if version.delete_marker:
        return None
    try:
        return hashlib.sha256(fetch(folder.client, folder.place.bucket, version)[0]).hexdigest()
    except EstateError:
        return None


def elsewhere(
    estate: Estate,
    plan: ErasurePlan,
    places: Iterable[tuple[S3Location, str]],
    patterns: Patterns,
    marks: MarkKey,
    texts: TextPlaces,
    searchers: Searchers = THREADS,
) -> Iterator[ByteVerdict]:
    """What lies in S3 and is no copy, looked at. What else of the plan lies in it is looked at, or told, apart."""
    places = list(places)
    apart = {(place.bucket, place.prefix) for place, _ in places}
    others, waived = sorted(_places_of(plan) | apart), waived_files(plan, marks)
    told = {gap.dataset for gap in plan.gaps}
    for place, name in places:
        inside = list(_inside(place, others))
        mine = patterns.leaving_out(no_keys_at(plan.not_keys, str(place)))
        stays = waived.get(place.dataset, NOTHING_WAIVED)
        given = (estate, place, name, mine, texts, searchers, inside)
        short = short_numbers_then(plan, place.dataset, name, mine.key_sets)
        seen = look_at(*given, named=not plan.copies, short=short, waived=stays).at(place.dataset)
        untold = () if place.dataset in told else tuple(map(patterns.mask, texts.untold(str(place))))
        more = {"root": patterns.mask(seen.root), "unverified": (*seen.unverified, *untold)}
        yield seen.model_copy(update=more)


def _inside(place: S3Location, others: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What keys in a place begin with that belong to others. others: sorted, of all buckets: there may be very many."""
    for number in range(bisect_left(others, (place.bucket, place.prefix)), len(others)):
        bucket, prefix = others[number]
        if bucket != place.bucket or not prefix.startswith(place.prefix):
            return
        yield prefix


def look_at(
    estate: Estate,
    place: S3Location,
    name: str,
    patterns: Patterns,
    texts: TextPlaces,
    searchers: Searchers = THREADS,
    without: Collection[str] = (),
    *,
    alone: bool = False,
    named: bool = False,
    short: ShortNumbersThen | None = None,
    waived: WaivedFiles = NOTHING_WAIVED,
) -> ByteVerdict:
    """Everything in a place in S3 that is no copy (see `look_past_s3`). texts: by what rules text is read. without:
    prefixes of keys that are left out."""
    if estate.s3 is None:
        told = "not looked at: the estate file has no settings for S3 (`s3`)"
        return ByteVerdict(copy_id=name, root=str(place), files=(), unverified=(told,))
    clients = s3_clients(estate)
    try:
        with _listed(place):
            region = region_of(clients(None), place.bucket)
    except ScanError as error:
        return ByteVerdict(copy_id=name, root=str(place), files=(), unverified=(error.what,))
    folder = S3Folder.of(clients, region, place, texts, without)
    return look_past_s3(name, patterns, folder, searchers, alone=alone, named=named, short=short, waived=waived)


def _places_of(plan: ErasurePlan) -> set[tuple[str, str]]:
    """(bucket, what the keys in it begin with) of everything in S3 that the plan knows."""
    found = set()
    for copy in plan.copies:
        if place := object_prefix(copy.location):
            found.add((place.bucket, copy.s3_table.prefix if copy.s3_table else place.prefix))
    told = [item.dataset for item in plan.examined]
    told += [gap.dataset for gap in plan.gaps if gap.dataset and gap.kind == GapKind.REMOTE_TABLE]
    return found | {(there.bucket, there.prefix) for dataset in told if (there := s3_place(dataset))}


def _folder(estate: Estate, copy: Copy, place: S3Location) -> S3Folder:
    texts = TextPlaces.of_table(str(place), searched_text_of(copy.facts))
    return S3Folder(s3_clients(estate), copy.facts.get("region"), place, texts)


def _listed(place: S3Location) -> AbstractContextManager[None]:
    return unreadable("the bucket cannot be listed", str(place), _REACH)
