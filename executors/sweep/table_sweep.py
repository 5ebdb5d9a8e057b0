"""Sweeps one table: what no retained version needs goes, told by the engine, checked against the table's own metadata.

Two passes. The dry one asks the engine which listed files are not needed; the real one gives the engine exactly those
files to look at again, so that nothing goes that was not told before, and nothing that a writer has committed since.
Delta: VACUUM … USING INVENTORY. Iceberg: expire_snapshots, and remove_orphan_files with `file_list_view`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from executors.engine.spark_session import quote, quote_table, string_literal
from executors.formats.iceberg.referenced_files import metadata_file
from executors.sweep.swept_storage import Store, store_of
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.metadata_json import METADATA_ENDS
from pii_tracer.lake.formats.iceberg.snapshot_expiry import Expiry, History, referenced
from pii_tracer.lake.formats.iceberg.stray_files import as_written
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.model.errors import PiiTracerError, RunError
from pii_tracer.model.locations import engine_path
from pii_tracer.retention.storage_listings import Listing
from pii_tracer.retention.sweep_rules import Held, Swept, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GB = 1024**3
_SECOND_MS = 1000
_OWN = {DELTA: r"^_delta_log/", ICEBERG: r"^metadata/"}
_OTHERS = {
    DELTA: r"/(_delta_log|\.hoodie)/|(^|/)metadata/[^/]*\.metadata\.json|^\.hoodie/",
    ICEBERG: r"(^|/)(_delta_log|\.hoodie)/|/metadata/[^/]*\.metadata\.json",
}
"""What tells, below a table's folder, that another table lies there."""
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
    expiry: Expiry | None
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
        proposal = _propose(spark, target, store, listing, now)
        told = _told(told.model_copy(update={"keeps_versions": store.keeps_versions}), proposal, price)
        return _apply(spark, target, store, proposal, now, told) if apply else told
    except PiiTracerError as error:
        return told.model_copy(update={"failed": error.what})
    except Exception as error:  # an engine's words can quote data: only the kind of its error is told
        return told.model_copy(update={"failed": f"the engine refused: {type(error).__name__}"})


def _propose(spark: SparkSession, target: Target, store: Store, listing: Listing, now: datetime) -> _Proposal:
    listed = _listed(spark, target, store, listing)
    view = _view(listed, target, "listed")
    try:
        if target.format is DELTA:
            told = _delta(spark, target, store, view, dry=True)
            log = store.delta_log()
            freed, needed, known, removed = None, log.live, log.known, log.removed()
        else:
            told = _iceberg_orphans(spark, target, store, view, now, dry=True)
            history = History(store.folder, _pointed(spark, target, store))
            freed = history.expiry(target.refs, target.cutoff(now), now)
            needed, known, removed = history.referenced(), _as_written, {}
    finally:
        spark.catalog.dropTempView(view)
    unneeded = store.named(told)
    if unneeded & needed:
        raise RunError(
            f"the engine would remove {len(unneeded & needed)} files that the table's metadata names: nothing is done",
            where=target.name,
            todo="compare the inventory's paths with the table's",
        )
    rows = listed.where(listed.path.isin(sorted(unneeded))) if len(unneeded) < 1000 else listed
    found = [Candidate(r["path"], r["length"], r["modificationTime"]) for r in rows.toLocalIterator()]
    going = [c for c in found if c.path in unneeded and _due(c, removed, target.cutoff_of(c.path, now))]
    own = [c for c in going if known(c.path)]
    return replace(_seen(own, store, freed), strange=len(going) - len(own))


def _due(found: Candidate, removed: Mapping[str, int], cutoff: datetime) -> bool:
    """Whether a file is as old as it has to be, and was not removed from the table since: Delta 4.1 and later pass over
    `RETAIN` and go by the table's own setting, which may be shorter than the class (hazard D3).
    """
    return max(found.modified, removed.get(found.path, 0)) < cutoff.timestamp() * 1000


def _as_written(path: str) -> bool:
    return as_written(path.rpartition("/")[2])


def _needed(spark: SparkSession, target: Target, store: Store) -> frozenset[str]:
    """Files that the table's metadata names."""
    if target.format is DELTA:
        return store.delta_log().live
    return referenced(store.folder, _pointed(spark, target, store))


def _pointed(spark: SparkSession, target: Target, store: Store) -> str | None:
    """The metadata file that the table's catalog points at now; None where the folder itself tells."""
    if not target.pointed:
        return None
    return str(metadata_file(spark, store.folder, quote_table(str(target.sql_name))))


def _seen(found: Sequence[Candidate], store: Store, freed: Expiry | None) -> _Proposal:
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
    holders = proposal.expiry.holders if proposal.expiry else ()
    return told.model_copy(
        update={
            "files": len(sizes),
            "bytes": sum(sizes.values()),
            "monthly_cost": round(sum(sizes.values()) / _GB * price, 4),
            "snapshots": len(proposal.expiry.expired) if proposal.expiry else 0,
            "gone": proposal.gone,
            "changed": proposal.changed,
            "strange": proposal.strange,
            "held": tuple(Held(ref=h.ref, kind=h.kind, snapshot=str(h.snapshot), until=h.until) for h in holders),
        }
    )


def _sizes(proposal: _Proposal) -> dict[str, int]:
    freed = dict(proposal.expiry.freed) if proposal.expiry else {}
    return freed | {c.path: c.length for c in proposal.candidates}


def _apply(spark: SparkSession, target: Target, store: Store, proposal: _Proposal, now: datetime, told: Swept) -> Swept:
    if target.format is ICEBERG and proposal.expiry and proposal.expiry.expired:
        _expire(spark, target, now)
    if proposal.candidates:
        rows = [(c.path, c.length, False, c.modified) for c in proposal.candidates]
        view = _view(spark.createDataFrame(rows, _COLUMNS), target, "going")
        try:
            if target.format is DELTA:
                _delta(spark, target, store, view, dry=False)
            else:
                _iceberg_orphans(spark, target, store, view, now, dry=False)
        finally:
            spark.catalog.dropTempView(view)
    sizes = _sizes(proposal)
    left = store.modified(list(sizes))
    made = told.model_copy(
        update={"files": len(sizes) - len(left), "bytes": sum(n for p, n in sizes.items() if p not in left)}
    )
    needed = _needed(spark, target, store)
    _intact(target, store, needed, sizes.keys() - left.keys())
    stuck = left.keys() - needed  # engines pass over what they may not remove, and say nothing
    if stuck:
        reason = (
            f"{len(stuck)} of {len(sizes)} files that no version needs could not be removed: see who may write there"
        )
        return made.model_copy(update={"failed": reason})
    return made


def _intact(target: Target, store: Store, needed: Collection[str], removed: Collection[str]) -> None:
    """Every file that the table's metadata names is still there.

    Raises:
        RunError: one is not.
    """
    missing = store.missing({path for path in needed if not path.endswith(METADATA_ENDS)}, removed)
    if missing:
        raise RunError(
            f"{len(missing)} files that the table names are not there after the sweep",
            where=target.name,
            todo="stop sweeping, and restore them from the bucket's versions or a backup",
        )


# --- engines ---


def _listed(spark: SparkSession, target: Target, store: Store, listing: Listing) -> DataFrame:
    """The listing's files of one table.

    Raises:
        RunError: it names none of them, so that it belongs to another place or writes paths in another way; or it
            names another table's metadata among them.
    """
    rows = spark.read.parquet(str(listing.file))
    inside = rows.where(rows.path.startswith(f"{target.location}/") & ~rows.isDir)
    relative = rows.path.substr(len(str(target.location)) + 2, 1_000_000)
    if inside.isEmpty():
        raise RunError(
            "the inventory names no file of this table: another bucket, or paths written in another way",
            where=target.name,
            todo="name the prefix to replace with --map",
        )
    if not inside.where(relative.rlike(_OTHERS[target.format])).isEmpty():
        raise RunError(
            "the inventory names another table's metadata inside this table's folder: its files would be taken for"
            " orphans",
            where=target.name,
            todo="move one of the two tables",
        )
    if not store.local and inside.where(relative.rlike(_OWN[target.format])).isEmpty():
        raise RunError(
            "the inventory names nothing of this table's metadata, so that it cannot tell of other tables in the"
            " folder",
            where=target.name,
            todo="use an inventory of everything below the table's folder",
        )
    # neither hidden files nor names that Spark would fold into others (`..`, `//`)
    inside = inside.where(~relative.rlike(r"(^|/)[./]"))
    if target.format is DELTA:
        return inside  # Delta passes over `_` names itself, and enters `_change_data`
    # a hidden name, unless it is a partition folder such as `_day=1`
    return inside.where(~relative.rlike(r"(^|/)_[^/=]*(/|$)"))


def _view(frame: DataFrame, target: Target, what: str) -> str:
    """A temporary view of its own for each table: several are swept at once."""
    name = f"pii_sweep_{what}_" + hashlib.sha256(str(target.location).encode()).hexdigest()[:12]
    frame.createOrReplaceTempView(name)
    return name


def _delta(spark: SparkSession, target: Target, store: Store, view: str, *, dry: bool) -> list[str]:
    """Delta takes the inventory as a query, and passes over paths that do not begin as it writes its own."""
    table = quote_table(target.sql_name) if target.sql_name else f"delta.{quote(engine_path(str(target.location)))}"
    front, start = string_literal(store.front), len(store.cut) + 1
    query = f"SELECT concat({front}, substr(path, {start})) AS path, length, isDir, modificationTime FROM {view}"
    return vacuum_listed(spark, table, query, target.days * 24, dry=dry)


def vacuum_listed(spark: SparkSession, table: str, query: str, hours: int, *, dry: bool) -> list[str]:
    """Delta's VACUUM of listed files: https://docs.delta.io/latest/delta-utility.html#inventory-table.

    table: quoted; query: gives the files, their paths spelled as the table's own. Returns what it would remove (dry).
    """
    rows = spark.sql(f"VACUUM {table} USING INVENTORY ({query}) RETAIN {hours} HOURS" + (" DRY RUN" if dry else ""))
    return [str(row[0]) for row in rows.toLocalIterator()]


def _iceberg_orphans(
    spark: SparkSession, target: Target, store: Store, view: str, now: datetime, *, dry: bool
) -> list[str]:
    catalog, _, table = str(target.sql_name).partition(".")
    files = f"{view}_paths"
    root, spelled = str(target.location), _spelled(spark, target, store)
    frame = spark.sql(
        f"SELECT concat({string_literal(spelled)}, substr(path, {len(root) + 1})) AS file_path,"
        f" timestamp_millis(modificationTime) AS last_modified FROM {view}"
    )
    frame.createOrReplaceTempView(files)
    try:
        rows = spark.sql(
            f"CALL {quote(catalog)}.system.remove_orphan_files(table => {string_literal(table)},"
            f" older_than => TIMESTAMP {_moment(target.cutoff(now))}, dry_run => {str(dry).lower()},"
            f" file_list_view => {string_literal(files)}, prefix_mismatch_mode => 'ERROR')"
        ).toLocalIterator()
        return [str(row[0]) for row in rows]
    finally:
        spark.catalog.dropTempView(files)


def _expire(spark: SparkSession, target: Target, now: datetime) -> None:
    """By age only: how many to keep at least is the table's own setting."""
    catalog, _, table = str(target.sql_name).partition(".")
    spark.sql(
        f"CALL {quote(catalog)}.system.expire_snapshots(table => {string_literal(table)},"
        f" older_than => TIMESTAMP {_moment(target.cutoff(now))})"
    ).collect()


def _spelled(spark: SparkSession, target: Target, store: Store) -> str:
    """The table's folder as its metadata writes it (with or without a scheme)."""
    return str(load_iceberg(store.folder, _pointed(spark, target, store)).location()).rstrip("/")


def _moment(when: datetime) -> str:
    """A timestamp literal; the session's zone is UTC."""
    return string_literal(when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f"))
