"""`retention sweep`: vacuum of many tables from one listing of the storage. A dry run unless `--apply` is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import Any

import click

from pii_tracer.app.retention.s3_tables import clients_of
from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.model.errors import ConfigError, ExitCode, UsageError
from pii_tracer.retention.storage_listings import Listing
from pii_tracer.retention.sweep_rules import (
    Skipped,
    Swept,
    Target,
    targets,
)


@click.command()
@estate_option
@state_option
@click.option("--apply/--dry-run", "apply_", default=False, help="remove files, or only list them (the default)")
@click.option(
    "--inventory",
    "source",
    type=click.Path(path_type=Path),
    help="S3 Inventory's manifest.json, or a listing as CSV or Parquet; without it the tables' folders are walked",
)
@click.option("--map", "maps", multiple=True, metavar="FROM=TO", help="replace a prefix of the inventory's paths")
@click.option("--table", "only", multiple=True, help="only this table, by its name or path")
@click.option("--parallel", type=click.IntRange(1, 32), default=2, show_default=True, help="tables at once")
@format_option("text", "json")
def sweep(
    estate_file: Path,
    state: Path,
    apply_: bool,
    source: Path | None,
    maps: tuple[str, ...],
    only: tuple[str, ...],
    parallel: int,
    fmt: str,
) -> int:
    """Remove what no version needs that the tables' classes keep: Delta files, Iceberg snapshots and orphans.

    The declared classes are the approval. A table is left alone if it has no named class, is under a legal hold, is
    read by a clone, or has settings that promise more. While a hold names nothing that exists, nothing is removed.
    Exit 7 when a table could not be swept.
    """
    from pii_tracer.cli.retention.retention_commands import estate_tables
    from pii_tracer.cli.retention.unmatched_holds import look_at_holds
    from pii_tracer.retention.storage_listings import normalise, walk

    settings = Settings(estate_file, state)
    estate = settings.estate()
    now = datetime.now(timezone.utc)
    inventory, tables = estate_tables(settings)
    look_at_holds(estate, inventory, tables, now, apply_=apply_)
    found, skipped = targets(estate.retention, estate.holds, tables, inventory, now, only, _swept(estate))
    unknown = sorted(set(only) - {name for table in tables for name in table.names})
    if unknown:
        raise UsageError(
            f"no table is called {', '.join(unknown)}", todo="use a name that `pii-tracer inventory` lists"
        )
    folder = settings.state / "sweeps"
    record = _Record(folder / f"sweep-{now.strftime('%Y%m%dT%H%M%S.%fZ')}.json", now, apply_, source, skipped)
    listing_file = record.path.with_suffix(".parquet")
    try:
        listing = normalise(source, walk((t.location for t in found), clients_of(estate)), listing_file, _mapped(maps))
        record.begin(listing)
        swept = _sweep(settings, found, listing, now, apply_, parallel, record) if found else ()
    finally:
        listing_file.unlink(missing_ok=True)
    record.end()
    _show(record, swept, skipped, apply_, estate.prices.currency, fmt)
    return int(ExitCode.PARTIAL if any(s.failed for s in swept) else ExitCode.DONE)


class _Record:
    """What a sweep did, as one JSON file in the state folder: written at its start, after each table, at its end."""

    def __init__(self, path: Path, now: datetime, applied: bool, source: Path | None, skipped: Sequence[Skipped]):
        self.path = path
        self._lock = Lock()
        self._data: dict[str, Any] = {
            "started": now.isoformat(),
            "finished": None,
            "applied": applied,
            "inventory": str(source) if source else "walk",
            "skipped": [s.model_dump(mode="json") for s in skipped],
            "tables": [],
        }

    def begin(self, listing: Listing) -> None:
        """Note what is swept from, before the first file goes."""
        taken = listing.taken.isoformat() if listing.taken else None
        self._data |= {"listed_files": listing.files, "listed_bytes": listing.bytes, "listing_taken": taken}
        self._write()

    def add(self, swept: Swept) -> None:
        """One table is done."""
        with self._lock:
            self._data["tables"].append(swept.model_dump(mode="json"))
            self._write()

    def end(self) -> None:
        """Nothing more is done."""
        self._data["finished"] = datetime.now(timezone.utc).isoformat()
        self._write()

    def as_json(self) -> str:
        """The record as it stands in the file."""
        return json.dumps(self._data, indent=2, sort_keys=True)

    def _write(self) -> None:
        write_atomic(self.path, (self.as_json() + "\n").encode(), mode=0o600)


def _swept(estate: Estate) -> frozenset[str]:
    """Catalogs whose tables were tried: Glue's was not."""
    return frozenset(name for name, catalog in estate.catalogs.items() if catalog_of(catalog.type).swept)


def _sweep(
    settings: Settings,
    found: Sequence[Target],
    listing: Listing,
    now: datetime,
    apply_: bool,
    parallel: int,
    record: _Record,
) -> tuple[Swept, ...]:
    from executors.engine.spark_session import open_session
    from executors.stores.spark_connectors import store_of
    from executors.sweep.table_sweep import sweep_table

    estate = settings.estate()
    clients = clients_of(estate)
    spark = open_session(estate, settings.base, stores={store for t in found if (store := store_of(str(t.location)))})
    price = estate.prices.storage_gb_month
    done = []
    with ThreadPoolExecutor(max_workers=parallel) as pool:
        jobs = [pool.submit(sweep_table, spark, t, listing, now, price, clients, apply=apply_) for t in found]
        for job in as_completed(jobs):
            swept = job.result()
            record.add(swept)
            click.echo(f"{swept.table}: {'failed' if swept.failed else 'done'}", err=True)
            done.append(swept)
    return tuple(sorted(done, key=lambda s: s.table))


def _mapped(maps: Sequence[str]) -> dict[str, str]:
    result = {}
    for text in maps:
        old, separator, new = text.partition("=")
        if not separator or not old:
            raise ConfigError(f"`{text}` is not a mapping", todo="write it as FROM=TO, e.g. s3://lake/=/mnt/lake/")
        result[old] = new
    return result


def _show(
    record: _Record, swept: Sequence[Swept], skipped: Sequence[Skipped], applied: bool, currency: str, fmt: str
) -> None:
    if fmt == "json":
        click.echo(record.as_json())
        return
    verb = "removed" if applied else "would remove"
    for item in swept:
        if item.failed:
            click.echo(f"{item.table}: not swept: {item.failed}")
            continue
        cost = f", {item.monthly_cost:g} {currency} a month" if item.monthly_cost else ""
        click.echo(
            f"{item.table} ({item.class_name}, {counted(item.days, 'day')}): {verb}"
            f" {counted(item.files, 'file')}, {counted(item.bytes, 'byte')}"
            f", {counted(item.snapshots, 'snapshot')}{cost}"
        )
        if item.keeps_versions and item.files:
            click.echo("    the bucket keeps old versions: the bytes are freed when its lifecycle removes these")
        for held in item.held:
            until = held.until.strftime("%Y-%m-%d %H:%M UTC") if held.until else "never"
            click.echo(f"    {held.kind} {held.ref} keeps snapshot {held.snapshot} until {until}")
        if item.strange:
            click.echo(
                f"    {counted(item.strange, 'file is', 'files are')} not named as the"
                " table's own and stay: move them out of its folder"
            )
        if item.gone or item.changed:
            click.echo(
                f"    {counted(item.gone, 'listed file is', 'listed files are')} gone, {item.changed} changed and stay"
            )
    for one in skipped:
        click.echo(f"{one.table}: left alone: {one.reason}")
    total = sum(item.files for item in swept if not item.failed)
    size = sum(item.bytes for item in swept if not item.failed)
    click.echo(f"{verb} {total} files, {size} bytes; record: {record.path}")
    if not applied:
        click.echo("nothing was removed; --apply does so")
