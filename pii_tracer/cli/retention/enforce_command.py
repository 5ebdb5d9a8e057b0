"""`retention enforce`: say each change, old to new; make it; read the tables again."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import format_of, table_formats
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.locations import is_s3
from pii_tracer.retention.setting_changes import (
    Change,
    Enforcement,
    Kept,
    enforcement,
)
from pii_tracer.retention.settings_check import Table


@click.command()
@estate_option
@state_option
@click.option("--apply/--dry-run", "apply_", default=False, help="make the changes, or only list them (the default)")
@click.option(
    "--refs", "with_refs", is_flag=True, help="limit the age of branches and tags too; older ones can then go"
)
@format_option("text", "json")
def enforce(estate_file: Path, state: Path, apply_: bool, with_refs: bool, fmt: str) -> int:
    """Set the native retention of every table whose class is named, and read it again afterwards.

    Tables under a legal hold are left alone, and no setting goes below a floor. Exit 4 when something stays as it is
    although it violates the policy, 7 when the engine refused a change or it cannot be seen in the table.
    """
    from pii_tracer.cli.retention.retention_commands import estate_tables
    from pii_tracer.cli.retention.unmatched_holds import look_at_holds

    settings = Settings(estate_file, state)
    estate, now = settings.estate(), datetime.now(timezone.utc)
    inventory, tables = estate_tables(settings)
    look_at_holds(estate, inventory, tables, now, apply_=apply_)
    before = enforcement(estate.retention, estate.holds, tables, now, with_refs=with_refs)
    if fmt == "text":
        for change in before.changes:
            old = "unset" if change.old is None else change.old
            click.echo(f"{change.table}: {change.setting}: {old} → {change.new}")
        for item in before.kept:
            click.echo(f"{item.table}: {item.setting}: stays, {item.reason}")
    failed: tuple[Kept, ...] = ()
    if apply_ and before.changes:
        refused = _apply(settings, before)
        _, tables = estate_tables(settings)
        failed = tuple(_not_made(before, tables, {_key(c): kind for c, kind in refused}))
    _close(before, failed, apply_, fmt)
    if failed:
        return int(ExitCode.PARTIAL)
    return int(ExitCode.POLICY_DENIED if before.kept or (before.changes and not apply_) else ExitCode.DONE)


def _apply(settings: Settings, wanted: Enforcement) -> tuple[tuple[Change, str], ...]:
    from executors.engine.spark_session import open_session
    from executors.stores.spark_connectors import store_of
    from executors.sweep.table_retention_settings import set_retention
    from pii_tracer.lake.dataset_paths import EstatePaths

    estate, base = settings.estate(), settings.base
    paths = EstatePaths(estate, base)
    here = {c.location for c in wanted.changes if not is_s3(c.location)}
    names = {location: paths.table_at(Path(location)) for location in here}
    # others are known by their places
    catalogued = {one.name for one in table_formats() if one.needs_catalog}
    names |= {str(t.location): t.name for t in paths.registry.remote if t.format in catalogued}
    spark = open_session(estate, base, stores={store for c in wanted.changes if (store := store_of(c.location))})
    return set_retention(spark, wanted.changes, names, lambda text: click.echo(text, err=True))


def _key(change: Change) -> tuple[str, str]:
    return change.location, change.setting


def _not_made(wanted: Enforcement, tables: tuple[Table, ...], refused: dict[tuple[str, str], str]) -> list[Kept]:
    """Changes that do not stand in the tables as they are now."""
    kept = [(t.location, k) for t in tables for k in format_of(t.format).kept_by(t.properties, t.refs)]
    now = {(location, k.setting): k.value for location, k in kept}
    raw = {(t.location, name): value for t in tables for name, value in t.properties.items()}
    left = []
    for change in wanted.changes:
        # a setting in order may no longer be told as one that keeps anything
        value = now.get(_key(change), raw.get(_key(change)))
        gone = change.ref is not None and change.ref.field == "min_snapshots_to_keep" and _key(change) not in now
        if value != change.new and not gone:
            reason = refused.get(_key(change)) or "the table does not show the new value"
            left.append(Kept(table=change.table, setting=change.setting, reason=reason))
    return left


def _close(before: Enforcement, failed: tuple[Kept, ...], applied: bool, fmt: str) -> None:
    if fmt == "json":
        data = {
            "applied": applied,
            "changes": [c.model_dump(mode="json") for c in before.changes],
            "kept": [k.model_dump(mode="json") for k in before.kept],
            "failed": [k.model_dump(mode="json") for k in failed],
        }
        click.echo(json.dumps(data, indent=2))
        return
    for item in failed:
        click.echo(f"{item.table}: {item.setting}: not set: {item.reason}")
    if applied:
        click.echo(
            f"{counted(len(before.changes) - len(failed), 'change')} made, {len(failed)} "
            f"failed, {len(before.kept)} skipped"
        )
    else:
        click.echo(f"{counted(len(before.changes), 'change')} to make with --apply, {len(before.kept)} skipped")
