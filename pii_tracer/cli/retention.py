"""`retention check`: do the tables' own settings keep old data longer than their class allows?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from pii_tracer.cli.settings import Settings, estate_option, format_option, state_option
from pii_tracer.errors import ExitCode
from pii_tracer.inventory import Inventory, TableState
from pii_tracer.model import Format

_DAY_MS = 86_400_000
_DELTA_DAYS = {"delta.deletedFileRetentionDuration": 7.0, "delta.logRetentionDuration": 30.0}
_UNIT_DAYS = {"second": 1 / 86400, "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0}


@dataclass(frozen=True)
class Violation:
    """A setting that keeps old data longer than the class of the table, in days; `keeps` is None for ever."""

    table: str
    setting: str
    keeps: float | None
    allowed: int


@click.group()
def retention() -> None:
    """Retention as policy. `check` compares; changing settings and sweeping are not supported yet."""


@retention.command()
@estate_option
@state_option
@format_option("text", "json")
def check(estate_file: Path, state: Path, fmt: str) -> int:
    """Compare the native settings of every Iceberg and Delta table with the estate's PII class.

    Every table is held to the PII class, the stricter one, because this command does not read lineage.
    """
    from pii_tracer.cli.planning import take_inventory

    settings = Settings(estate_file, state)
    estate = settings.estate()
    found = tuple(violations(take_inventory(estate, settings.base, lambda _: None), estate.retention.pii_days))
    if fmt == "json":
        click.echo(json.dumps([asdict(v) for v in found], indent=2))
    else:
        for item in found:
            keeps = "for ever" if item.keeps is None else f"{item.keeps:g} days"
            click.echo(f"{item.table}: {item.setting} keeps old data {keeps}, its class allows {item.allowed}")
        click.echo(f"{len(found)} violation(s)")
    return int(ExitCode.POLICY_DENIED if found else ExitCode.DONE)


def violations(inventory: Inventory, allowed: int) -> Iterator[Violation]:
    """Settings that keep old data longer than `allowed` days, table by table."""
    for state in inventory.tables:
        name = state.table or state.location
        for setting, keeps in _kept(state):
            if keeps is None or keeps > allowed:
                yield Violation(name, setting, keeps, allowed)


def _kept(state: TableState) -> Iterator[tuple[str, float | None]]:
    """(setting, days) of a table; an unset one counts with the engine's default, which may be for ever.

    Defaults: https://docs.delta.io/latest/table-properties.html and
    https://iceberg.apache.org/docs/latest/configuration/ (in Iceberg references have no age).
    """
    if state.format is Format.DELTA:
        for setting, default in _DELTA_DAYS.items():
            yield setting, _interval_days(state.properties.get(setting, ""), default)
    if state.format is Format.ICEBERG:
        age = state.properties.get("history.expire.max-snapshot-age-ms")
        yield "history.expire.max-snapshot-age-ms", int(age) / _DAY_MS if age and age.isdigit() else 5.0
        for ref in state.refs:
            limit = state.properties.get("history.expire.max-ref-age-ms")
            days = int(limit) / _DAY_MS if limit and limit.isdigit() else None
            yield f"{ref.kind.value} {ref.name}", days


def _interval_days(text: str, default: float) -> float | None:
    if not text:
        return default
    match = re.fullmatch(r"(?:interval\s+)?(\d+)\s+(second|minute|hour|day|week)s?", text.strip(), re.IGNORECASE)
    return int(match.group(1)) * _UNIT_DAYS[match.group(2).lower()] if match else None
