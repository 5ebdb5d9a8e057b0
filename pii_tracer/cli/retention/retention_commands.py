"""`retention`: how long old data may stay, checked against tables and DDL, enforced, and swept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.cli.retention.enforce_command import enforce
from pii_tracer.cli.retention.sweep_command import sweep
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.registry import catalog_of
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ConfigError, ExitCode
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import in_place
from pii_tracer.retention.settings_check import (
    Finding,
    FindingKind,
    Table,
    check_tables,
)

_NOT_READ = frozenset(
    {
        GapKind.UNREADABLE,
        GapKind.MISSING_ROOT,
        GapKind.HDFS_PLACE,
        GapKind.HDFS_UNREAD,
        GapKind.OBJECT_PLACE,
        GapKind.OBJECT_PLACE_UNREAD,
        GapKind.CATALOG_UNREADABLE,
        GapKind.UNKNOWN_CATALOG,
        GapKind.UNKNOWN_TABLE,
        GapKind.MISSING_TABLE,
        GapKind.MOVED_TABLE,
        GapKind.MISSING_FILES,
        GapKind.REMOTE_TABLE,
    }
)
"""Gaps of discovery behind which a table can be whose settings nobody compared."""


@click.group()
def retention() -> None:
    """Retention as policy: compare the tables' own settings with their classes, set them, remove what has expired."""


@retention.command()
@estate_option
@state_option
@click.option(
    "--ddl",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="check the tables that this SQL file (or folder of them) creates, instead of those that exist",
)
@format_option("text", "json")
def check(estate_file: Path, state: Path, ddl: tuple[Path, ...], fmt: str) -> int:
    """Compare the native settings of tables with the class that the estate file or the table names for them.

    A table with personal data, by lineage or by declared column names, needs a class. Exit 4 when something violates
    the policy. Needs no Spark and changes nothing.
    """
    settings = Settings(estate_file, state)
    found = check_ddl(settings, ddl) if ddl else check_estate(settings)[1]
    _show(found, fmt)
    return int(ExitCode.POLICY_DENIED if any(f.violation for f in found) else ExitCode.DONE)


def check_estate(settings: Settings) -> tuple[tuple[Table, ...], tuple[Finding, ...]]:
    """The estate's tables, and what is wrong with them."""
    inventory, tables = estate_tables(settings)
    # a folder in S3 that is no table by anybody's word is told: nothing says that it has a history
    roots = {str(place.location) for place in inventory.remote if not place.tables}
    unread = [
        Finding(table=g.evidence, kind=FindingKind.UNREAD, reason=g.reason, violation=g.evidence not in roots)
        for g in inventory.gaps
        if g.kind in _NOT_READ
    ]
    return tables, (*check_tables(settings.estate().retention, tables), *unread)


def estate_tables(settings: Settings) -> tuple[Inventory, tuple[Table, ...]]:
    """What exists, and its tables as the rules see them."""
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.retention.pii_columns import personal_columns
    from pii_tracer.app.retention.s3_tables import with_tables_in_s3
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.retention.checked_tables import tables_of

    estate, base = settings.estate(), settings.base
    # archives have no history of their own, so that buckets need not be asked
    inventory = take_inventory(estate, base, lambda _: None, stored=False)
    inventory = with_tables_in_s3(_without_places(inventory), estate, base)
    personal = personal_columns(settings, inventory)
    by_location = {s.location: s for s in inventory.tables}
    return inventory, tables_of(inventory, EstatePaths(estate, base), lambda s: personal.of_state(s, by_location))


def _without_places(inventory: Inventory) -> Inventory:
    """Retention does not look at tables in HDFS and in `object_stores`."""
    return inventory.model_copy(update={"tables": tuple(t for t in inventory.tables if not in_place(t.location))})


def check_ddl(settings: Settings, places: Iterable[Path]) -> tuple[Finding, ...]:
    """What is wrong with the tables that some SQL files create."""
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.retention.pii_columns import personal_columns
    from pii_tracer.lineage.harvest import sql_files
    from pii_tracer.retention.ddl_tables import created
    from pii_tracer.retention.retention_classes import unknown_names

    estate, base = settings.estate(), settings.base
    # each once, where it is named first
    files = list(dict.fromkeys(f for p in places for f in (sorted(sql_files(p), key=_in_order) if p.is_dir() else [p])))
    if not files:
        raise ConfigError("there is no SQL file to check", todo="name files, or a folder that holds *.sql files")
    inventory = take_inventory(estate, base, lambda _: None, stored=False)
    personal = personal_columns(settings, inventory, files)
    found: list[Finding] = []
    texts = [(str(file), _text(file)) for file in files]
    for item in created(texts, estate.lineage.dialect, estate.catalogs):
        where = f"{item.file}:{item.line}"
        if item.unread:
            name = Path(item.file).name
            found.append(Finding(table=name, kind=FindingKind.UNREAD, reason=item.unread, where=where))
            continue
        # lineage knows the table as it is written there
        pii = personal.of_created((item.table, item.written), item.columns)
        of_format = item.format or _by_catalog(estate, item.table)
        table = Table((item.table,), of_format, item.properties, pii=pii, where=where)
        # a name that the rules know and these files do not create is nothing to complain of here
        strange = {name.lower() for name in unknown_names(estate.retention, [table.names])}
        found += [f for f in check_tables(estate.retention, [table]) if f.table.lower() not in strange]
    return tuple(found)


def _in_order(file: Path) -> tuple[tuple[int, str], ...]:
    """Files of a folder run by their paths, in which numbers count as numbers: `V2__a.sql` before `V10__b.sql`."""
    pieces = re.findall(r"\d+|\D+", str(file))
    return tuple((int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces)


def _by_catalog(estate: Estate, table: str) -> Format:
    """What a table is where its statement does not say: what its catalog holds, else Spark's own default.

    That default has no history.
    """
    first = table.split(".")[0].lower() if "." in table else ""
    named = {name.lower(): catalog.type for name, catalog in estate.catalogs.items()}
    return catalog_of(named.get(first, CatalogType.DECLARED)).default_format or Format.PARQUET


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ConfigError("the SQL file cannot be read", where=str(file), todo="save it as UTF-8") from None


def _show(found: Iterable[Finding], fmt: str) -> None:
    wrong = [f for f in found if f.violation]
    notes = [f for f in found if not f.violation]
    if fmt == "json":
        lists = {"violations": wrong, "notes": notes}
        click.echo(json.dumps({k: [f.model_dump(mode="json") for f in v] for k, v in lists.items()}, indent=2))
        return
    for finding in (*wrong, *notes):
        place = f"{finding.where}: " if finding.where else ""
        setting = f"{finding.setting}: " if finding.setting else ""
        click.echo(f"{place}{finding.table}: {setting}{finding.reason}" + ("" if finding.violation else " (note)"))
    click.echo(counted(len(wrong), "violation"))


retention.add_command(enforce)
retention.add_command(sweep)
