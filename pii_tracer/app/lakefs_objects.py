"""lakeFS repositories as planning and verification read them: every object that can still be had, through lakeFS and
past it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.lakefs.client import LakefsClient
from pii_tracer.lake.stores.lakefs.repository_discovery import declared_repository, repository_state
from pii_tracer.lake.stores.lakefs.repository_state import LakefsObject, LakefsState
from pii_tracer.lake.stores.lakefs.underlying_storage import OWN, Stored, storage_of
from pii_tracer.model.datasets import DatasetId, Match
from pii_tracer.model.errors import EstateError
from pii_tracer.model.plan import Copy
from pii_tracer.scan.folder_scan import name_tells, scan_bytes
from pii_tracer.scan.hits import FileScan, Hit
from pii_tracer.scan.known_columns import key_columns, row_columns
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify.byte_search import look_past, unread_uploads
from pii_tracer.verify.short_numbers import ShortNumbersThen
from pii_tracer.verify.stores.lakefs.lakefs_objects import LakefsLook, Shown, judge_repository
from pii_tracer.verify.verdicts import ByteVerdict
from planners.copies.scan_evidence import LakefsEvidence
from planners.locate.subject_survey import Survey
from planners.stores.lakefs.repositories import lakefs_match


def read_evidence(
    estate: Estate,
    base: Path,
    tables: tuple[TableState, ...],
    survey: Survey,
    state: LakefsState,
    numbers: OtherNumbers,
) -> LakefsEvidence:
    """Read every object that any commit, or what is staged, names, and every one that nobody names."""
    patterns = build_patterns(survey.key_sets.values())
    match, _ = lakefs_match(survey, state, tables)
    columns = _columns(match)
    objects = 0
    persons: dict[str, int] = {}
    strays: set[str] = set()
    unread: list[str] = []
    # as the verifier compares: an object that holds nobody but another with a longer key is left alone
    compared = key_columns(match, kind=state.declared.format)
    whole = numbers.at(patterns, state.dataset, state.location).comparing(compared)
    beneath = patterns.comparing(row_columns(match, state.declared.format))
    for item in _objects(estate, base, state, patterns, whole, beneath):
        objects += 1
        unread += [f"{item.scan.path}: {reason}" for reason in item.scan.unread]
        if any(not hit.weak or _ours(hit, columns) for hit in item.scan.hits):
            persons[item.address] = item.scan.size
            if item.stray:
                strays.add(item.address)
    unread += begun_uploads(estate, base, state)
    names = {path for tree in state.trees.values() for path in tree}
    names |= {path for branch in state.branches for path in branch.staged}
    names |= {branch.name for branch in state.branches} | set(state.tags)
    names |= {note for item in state.objects for pair in item.metadata.items() for note in pair}
    return LakefsEvidence(
        objects=objects,
        bytes=sum(persons.values()),
        persons=frozenset(persons) - strays,
        strays=frozenset(strays),
        named=sum(name_tells(name, patterns) for name in names),
        messages=_messages(estate, state, patterns),
        unread=tuple(unread),
    )


def _messages(estate: Estate, state: LakefsState, patterns: Patterns) -> int:
    """How many commits have a message or metadata that holds the person. None of it is kept."""
    server, repository = declared_repository(estate, state.dataset)
    client, seen, found = LakefsClient(server), set[str](), 0
    for ref in (*(b.head for b in state.branches), *state.tags.values(), *(c.id for c in state.commits)):
        if ref in seen:
            continue
        for commit in client.log(repository.name, ref):
            if commit["id"] not in seen:
                seen.add(commit["id"])
                notes = [str(commit.get("message", "")), *map(str, (commit.get("metadata") or {}).values())]
                found += any(name_tells(note, patterns) for note in notes)
    return found


def _columns(match: Match | None) -> frozenset[str]:
    return frozenset(term.label() for term in match.terms) if match else frozenset()


def _ours(hit: Hit, columns: frozenset[str]) -> bool:
    """A short number counts where the match looks at it."""
    return hit.column is not None and hit.column in columns


def look(estate: Estate, base: Path, copy: Copy, patterns: Patterns, in_rows: Patterns, plan_id: str) -> LakefsLook:
    """Read a copy that is a repository, all of it. in_rows: what is looked for in objects with rows of its table.

    Raises:
        EstateError: it cannot be read, or the estate file does not declare it any more.
    """
    state = _state(estate, base, copy.dataset)
    whole = in_rows.comparing(key_columns(copy.match, kind=copy.format))
    beneath = patterns.comparing(row_columns(copy.match, copy.format))
    found = judge_repository(copy, state, _objects(estate, base, state, patterns, whole, beneath), whole, plan_id)
    return replace(found, bytes=_with_begun(found.bytes, begun_uploads(estate, base, state)))


def look_elsewhere(
    estate: Estate,
    base: Path,
    dataset: DatasetId,
    patterns: Patterns,
    in_rows: Patterns,
    *,
    named: bool = False,
    short: ShortNumbersThen | None = None,
) -> ByteVerdict:
    """A repository that was examined and is no copy, looked at again. named, short: as in `look_past`, the latter in
    objects that are declared to hold rows."""
    name, root = f"(no copy) {dataset.name}", f"{dataset.namespace}/{dataset.name}"
    try:
        state = _state(estate, base, dataset)
        shown = _objects(estate, base, state, patterns, in_rows)
        found = [i.scan if i.declared else i.scan.model_copy(update={"hits": i.scan.strong}) for i in shown]
    except EstateError as error:
        return ByteVerdict(copy_id=name, root=root, files=(), unverified=(error.what,))
    return _with_begun(look_past(name, root, found, named=named, short=short), begun_uploads(estate, base, state))


def begun_uploads(estate: Estate, base: Path, state: LakefsState) -> list[str]:
    """Unfinished uploads in the storage below a repository, or why they are not known."""
    server, _ = declared_repository(estate, state.dataset)
    storage = storage_of(state.storage, server, estate, base)
    if storage is None:
        return []
    try:
        number = storage.uploads()
    except EstateError as error:
        return [f"{state.storage}: unfinished uploads: {error.what}"]
    return [unread_uploads(state.storage, number)] if number else []


def _with_begun(verdict: ByteVerdict, begun: list[str]) -> ByteVerdict:
    return verdict.model_copy(update={"unverified": (*verdict.unverified, *begun)})


def _state(estate: Estate, base: Path, dataset: DatasetId) -> LakefsState:
    server, repository = declared_repository(estate, dataset)
    return repository_state(estate, base, server, repository)


def _objects(
    estate: Estate,
    base: Path,
    state: LakefsState,
    patterns: Patterns,
    whole: Patterns | None = None,
    beneath: Patterns | None = None,
) -> Iterator[Shown]:
    """Every object, one after the other; what was collected is not there and is not shown.

    whole: the patterns for objects that are declared to hold rows of the table, where they are others. beneath: for
    what the storage alone has, which can hold such rows, too.

    What lakeFS no longer gives and the storage still has (a noncurrent version in a bucket) comes from there.
    """
    server, repository = declared_repository(estate, state.dataset)
    client, given = LakefsClient(server), set[str]()
    # under whatever path it is shown, an object is declared where one of its paths is
    named = (pair for tree in state.trees.values() for pair in tree.items())
    declared = {address for path, address in named if state.declares(path)}
    for item in state.objects:
        data = client.read(repository.name, item.ref, item.path)
        if data is not None:
            given.add(item.address)
            rows = item.address in declared or state.declares(item.path)
            yield _shown(item, rows, data, whole if rows and whole else patterns)
    storage = storage_of(state.storage, server, estate, base)
    if storage is None:
        return
    known, seen = {item.address for item in state.objects}, dict[str, int]()
    own = f"{state.storage}/{OWN}"
    for stored in storage.stored():
        seen[stored.address] = seen.get(stored.address, 0) + 1
        if stored.address.startswith(own) or (stored.address in given and seen[stored.address] == 1):
            continue
        scan = scan_bytes(_relative(stored, state), storage.read(stored), beneath or patterns)
        yield _beneath(stored, state, scan, known)


def _relative(stored: Stored, state: LakefsState) -> str:
    return stored.address.removeprefix(state.storage + "/")


def _shown(item: LakefsObject, declared: bool, data: bytes, patterns: Patterns) -> Shown:
    scan = scan_bytes(item.path, data, patterns)
    named = scan.model_copy(update={"path": f"{patterns.mask(item.path)}@{item.ref[:12]}"})
    return Shown(item.address, item.path, named, declared, data if declared else None)


def _beneath(stored: Stored, state: LakefsState, scan: FileScan, known: set[str]) -> Shown:
    version = f"?versionId={stored.version}" if stored.version else ""
    path = f"(storage) {_relative(stored, state)}{version}"
    stray = stored.address not in known
    return Shown(stored.address, None, scan.model_copy(update={"path": path}), declared=False, stray=stray)
