"""Sweeps one table: what no retained version needs goes, told by the engine, checked against the table's own metadata.

Two passes. The dry one asks the engine which listed files are not needed; the real one gives the engine exactly those
files to look at again, so that nothing goes that was not told before, and nothing that a writer has committed since.
By which statements, the table's format says (`FormatSweep`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from executors.formats.registry import support_of
from executors.sweep.format_sweep import FormatSweep, Freed
from executors.sweep.sweep_stores import Store, store_of
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import PiiTracerError, RunError
from pii_tracer.retention.storage_listings import Listing
from pii_tracer.retention.sweep_rules import Swept, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GB = 1024**3
_SECOND_MS = 1000
_COLUMNS = "path string, length bigint, isDir boolean, modificationTime bigint"


@dataclass(frozen=True)
class Candidate:
    """A listed file that the engine does not need."""

    path: str
    length: int
    modified: int


@dataclass(frozen=True)
class _Proposal:
    candidates: tuple[Candidate, ...]
    freed: Freed | None
    gone: int
    changed: int
    strange: int = 0


def sweep_table(
    spark: SparkSession,
    target: Target,
    listing: Listing,
    now: datetime,
    price: float,
    clients: ClientFactory,
    *,
    apply: bool,
) -> Swept:
    """Say what a sweep of one table removes, and with `apply` remove it. Errors come out as `failed`, table by table.

    listing: normalised; price: of one GB stored a month; clients: of S3, for tables that lie there.
    """
    told = Swept(table=target.name, class_name=target.class_name, days=target.days, cutoff=target.cutoff(now))
    try:
        store = store_of(target.location, clients)
        sweep = _sweep(spark, target, store, now)
        proposal = _propose(sweep, listing)
        told = _told(told.model_copy(update={"keeps_versions": store.keeps_versions}), proposal, price)
        return _apply(sweep, proposal, told) if apply else told
    except PiiTracerError as error:
        return told.model_copy(update={"failed": error.what})
    except Exception as error:  # an engine's words can quote data: only the kind of its error is told
        return told.model_copy(update={"failed": f"the engine rejected the call: {type(error).__name__}"})


def _sweep(spark: SparkSession, target: Target, store: Store, now: datetime) -> FormatSweep:
    support = support_of(target.format)
    if support is None:
        raise RunError(
            f"no installed package supports the sweep of {target.format} tables",
            where=target.name,
            todo="exempt the table, with a reason",
        )
    return support.sweep(spark, target, store, now)


def _propose(sweep: FormatSweep, listing: Listing) -> _Proposal:
    target, store = sweep.target, sweep.store
    listed = _listed(sweep, listing)
    view = _view(listed, target, "listed")
    try:
        judged = sweep.judge(view)
    finally:
        sweep.spark.catalog.dropTempView(view)
    unneeded = store.named(judged.unneeded)
    wanted = unneeded & judged.needed
    if wanted:
        raise RunError(
            f"the engine would remove {counted(len(wanted), 'file')} that the table's"
            " metadata still references; nothing was removed",
            where=target.name,
            todo="compare the inventory's paths with the paths in the table's metadata",
        )
    rows = listed.where(listed.path.isin(sorted(unneeded))) if len(unneeded) < 1000 else listed
    found = [Candidate(r["path"], r["length"], r["modificationTime"]) for r in rows.toLocalIterator()]
    going = [c for c in found if c.path in unneeded and _due(c, judged.removed, target.cutoff_of(c.path, sweep.now))]
    own = [c for c in going if judged.known(c.path)]
    return replace(_seen(own, store, judged.freed), strange=len(going) - len(own))


def _due(found: Candidate, removed: Mapping[str, int], cutoff: datetime) -> bool:
    """Whether a file is as old as it has to be, and was not removed from the table since: an engine may go by the
    table's own setting, which may be shorter than the class (hazard D3).
    """
    return max(found.modified, removed.get(found.path, 0)) < cutoff.timestamp() * 1000


def _seen(found: Sequence[Candidate], store: Store, freed: Freed | None) -> _Proposal:
    """Leave out what is gone already, and what was written again after the listing was made."""
    kept, gone, changed = [], 0, 0
    modified = store.modified([candidate.path for candidate in found])
    for candidate in found:
        when = modified.get(candidate.path)
        if when is None:
            gone += 1
        elif when >= candidate.modified + _SECOND_MS:
            changed += 1
        else:
            kept.append(candidate)
    return _Proposal(tuple(kept), freed, gone, changed)


def _told(told: Swept, proposal: _Proposal, price: float) -> Swept:
    sizes = _sizes(proposal)
    return told.model_copy(
        update={
            "files": len(sizes),
            "bytes": sum(sizes.values()),
            "monthly_cost": round(sum(sizes.values()) / _GB * price, 4),
            "snapshots": proposal.freed.versions if proposal.freed else 0,
            "gone": proposal.gone,
            "changed": proposal.changed,
            "strange": proposal.strange,
            "held": proposal.freed.held if proposal.freed else (),
        }
    )


def _sizes(proposal: _Proposal) -> dict[str, int]:
    freed = dict(proposal.freed.sizes) if proposal.freed else {}
    return freed | {c.path: c.length for c in proposal.candidates}


def _apply(sweep: FormatSweep, proposal: _Proposal, told: Swept) -> Swept:
    if proposal.freed and proposal.freed.versions:
        sweep.forget_versions()
    if proposal.candidates:
        rows = [(c.path, c.length, False, c.modified) for c in proposal.candidates]
        view = _view(frame_of_rows(sweep.spark, rows, _COLUMNS), sweep.target, "going")
        try:
            sweep.remove(view)
        finally:
            sweep.spark.catalog.dropTempView(view)
    sizes = _sizes(proposal)
    left = sweep.store.modified(list(sizes))
    made = told.model_copy(
        update={"files": len(sizes) - len(left), "bytes": sum(n for p, n in sizes.items() if p not in left)}
    )
    needed = sweep.needed()
    _intact(sweep, needed, sizes.keys() - left.keys())
    stuck = left.keys() - needed  # engines pass over what they may not remove, and say nothing
    if stuck:
        reason = (
            f"{len(stuck)} of {counted(len(sizes), 'unneeded file')} could not be removed: check the rights to delete "
            "them"
        )
        return made.model_copy(update={"failed": reason})
    return made


def _intact(sweep: FormatSweep, needed: Collection[str], removed: Collection[str]) -> None:
    """Every file that the table's metadata names is still there.

    Raises:
        RunError: one is not.
    """
    missing = sweep.store.missing({path for path in needed if sweep.has_to_stand(path)}, removed)
    if missing:
        raise RunError(
            f"{counted(len(missing), 'file')} referenced by the table cannot be found after the sweep",
            where=sweep.target.name,
            todo="stop the sweeps, and restore these files from the bucket's versions or a backup",
        )


# --- listings ---


def _listed(sweep: FormatSweep, listing: Listing) -> DataFrame:
    """The listing's files of one table.

    Raises:
        RunError: it names none of them, so that it belongs to another place or writes paths in another way; or it
            names another table's metadata among them.
    """
    target = sweep.target
    rows = sweep.spark.read.parquet(str(listing.file))
    inside = rows.where(rows.path.startswith(f"{target.location}/") & ~rows.isDir)
    relative = rows.path.substr(len(str(target.location)) + 2, 1_000_000)
    if inside.isEmpty():
        raise RunError(
            "the inventory lists no file of this table. It may belong to a different bucket, or write paths "
            "differently",
            where=target.name,
            todo="give the prefix to replace with --map",
        )
    if not inside.where(relative.rlike(_others(target.format))).isEmpty():
        raise RunError(
            "the inventory has metadata of a different table inside this table's folder: a sweep would remove files "
            "of that table as orphans",
            where=target.name,
            todo="move one of the two tables",
        )
    if not sweep.store.local and inside.where(relative.rlike(_own(target.format))).isEmpty():
        raise RunError(
            "the inventory lists no metadata of this table, so other tables in the folder could be missing, too",
            where=target.name,
            todo="use an inventory of the table's whole folder",
        )
    # neither hidden files nor names that Spark would fold into others (`..`, `//`)
    inside = inside.where(~relative.rlike(r"(^|/)[./]"))
    if sweep.sees_hidden:
        return inside
    # a hidden name, unless it is a partition folder such as `_day=1`
    return inside.where(~relative.rlike(r"(^|/)_[^/=]*(/|$)"))


def _view(frame: DataFrame, target: Target, what: str) -> str:
    """A temporary view of its own for each table: several are swept at once."""
    name = f"pii_sweep_{what}_" + hashlib.sha256(str(target.location).encode()).hexdigest()[:12]
    frame.createOrReplaceTempView(name)
    return name


def _own(kind: Format) -> str:
    """What tells, below a table's folder, that its own metadata was listed."""
    return f"^({'|'.join(re.escape(name) for name in sorted(format_of(kind).metadata_folders))})/"


def _others(kind: Format) -> str:
    """What tells, below a table's folder, that another table lies there."""
    signs = [("/" if one.name is kind else "(^|/)") + sign for one in table_formats() for sign in one.listed_signs()]
    return "|".join(signs)
