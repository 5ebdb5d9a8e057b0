"""Verification of lakeFS repositories: every object that can be had, through lakeFS and past it, is searched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.model.errors import ScanError
from pii_tracer.model.plan import Copy
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.object_rows import Rows, counted, state_of
from pii_tracer.verify.verdicts import Baseline, ByteVerdict, RowVerdict, StateRows


@dataclass(frozen=True)
class Shown:
    """An object that was read. path: as lakeFS shows it, None where only the storage does.

    declared: it holds rows of the table. data: its bytes, where it is declared. stray: nothing in lakeFS names it.
    """

    address: str
    path: str | None
    scan: FileScan
    declared: bool
    data: bytes | None = None
    stray: bool = False


@dataclass(frozen=True)
class LakefsLook:
    """What one reading of a repository showed."""

    bytes: ByteVerdict
    rows: RowVerdict
    baseline: Baseline


def judge_repository(
    copy: Copy, state: LakefsState, shown: Iterable[Shown], patterns: Patterns, plan_id: str
) -> LakefsLook:
    """Search a repository; count the persons' rows at each branch's head, and sum up everybody else's where the plan
    rewrites: in the plan's own commit, or at the head as long as it has made none. What others commit later is theirs.

    Short numbers count only in objects that are declared to hold rows of the table: elsewhere they mean nothing.

    Raises:
        ScanError: an object that a branch's head names is gone, or its rows cannot be read.
    """
    heads = {b.name: _declared(state, b.head) for b in state.branches}
    touched = [b for b in state.branches if b.name in copy.facts.get("branches", ())]
    written = {b.name: _declared(state, state.written(b, plan_id)) for b in touched}
    wanted = {address for addresses in (*heads.values(), *written.values()) for address in addresses}
    rows: dict[str, Rows] = {}
    files = []
    for item in shown:
        scan = item.scan
        files.append(scan if item.declared else scan.model_copy(update={"hits": scan.strong}))
        if item.address in wanted and item.data is not None:
            rows[item.address] = counted(copy, item.path or "", item.data, patterns)
    missing = wanted - rows.keys()
    if missing:
        raise ScanError(
            f"objects of a branch's head, or written by the plan, cannot be read: {len(missing)} of {len(wanted)}",
            where=copy.location,
            todo="restore the objects; a garbage collection may have removed too much",
        )
    verdict = judge(copy, copy.location, tuple(files), frozenset(copy.other_keys))
    unverified = (*verdict.unverified, *_not_seen(state))
    verdict = verdict.model_copy(update={"unverified": unverified, "compared": patterns.key_columns.labels})
    heads_rows = tuple(
        StateRows(state=f"branch {name}", rows=sum(rows[a].persons for a in found)) for name, found in heads.items()
    )
    states = tuple(state_of(f"branch {name}", [rows[a] for a in found]) for name, found in written.items())
    baseline = Baseline(copy_id=copy.id, states=states)
    return LakefsLook(verdict, RowVerdict(copy_id=copy.id, states=heads_rows), baseline)


def _declared(state: LakefsState, commit: str) -> list[str]:
    return [address for path, address in state.tree_of(commit).items() if state.declares(path)]


def _not_seen(state: LakefsState) -> list[str]:
    if state.stray is not None:
        return []
    return [
        f"{state.storage}: this machine cannot list the storage below the repository. So unreferenced objects and old "
        "versions were not searched"
    ]
