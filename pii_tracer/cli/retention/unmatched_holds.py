"""Holds that name nothing of the estate, told before anything is taken away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.errors import ConfigError
from pii_tracer.model.locations import object_uri
from pii_tracer.retention.retention_classes import unmatched_holds
from pii_tracer.retention.settings_check import Table


def look_at_holds(
    estate: Estate, inventory: Inventory, tables: Sequence[Table], now: datetime, *, apply_: bool
) -> None:
    """Say which holds name nothing; plans have a gap then.

    Raises:
        ConfigError: with `--apply`, since the table that is meant may be one of those that are cut.
    """
    unmatched = unmatched_holds(estate.holds, _known(estate, inventory, tables), now)
    if not unmatched:
        return
    what = "; ".join(f"the hold {hold} names {name}" for hold, name in unmatched)
    error = ConfigError(
        f"{what}, which matches no table or place; data that it should keep may be removed",
        where="the estate file, `holds`",
        todo="correct the name, as docs/holds.md says how to write it",
    )
    if apply_:
        raise error
    click.echo(f"--apply will refuse: {error}", err=True)


def _known(estate: Estate, inventory: Inventory, tables: Sequence[Table]) -> list[tuple[str, ...]]:
    """The names of everything that a hold can mean, whether or not it has a history to cut."""
    known = [table.names for table in tables]
    known += [(object_uri(archive.bucket, archive.prefix),) for archive in estate.archives]
    known += [(*place.tables, str(place.location)) for place in inventory.remote]
    known += [(topic.location, topic.dataset.name) for topic in inventory.topics]
    known += [(repository.location, repository.dataset.name) for repository in inventory.lakefs]
    known += [(vault.location,) for vault in estate.vaults]
    known += [(backup.location,) for backup in estate.backups]
    return known
