"""`verify`: look for persons again, of a plan or from a list of values, and believe no journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.common.plurals import counted, first_of
from pii_tracer.model.errors import UsageError

if TYPE_CHECKING:
    from pii_tracer.scan.hits import Reading


@click.command()
@click.argument("plan_file", required=False, type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option(
    "--values", type=click.File(encoding="utf-8-sig"), help="no plan: search for these, one a line; - is stdin"
)
@click.option(
    "--in", "places", multiple=True, help="with --values: a folder, a file, s3://… or hdfs://…  [default: the estate]"
)
@click.option("--read-all", is_flag=True, help="decode files and objects, too, that an earlier scan has searched")
@format_option("text", "json")
def verify(
    plan_file: Path | None,
    estate_file: Path,
    state: Path,
    values: TextIO | None,
    places: tuple[str, ...],
    read_all: bool,
    fmt: str,
) -> int:
    """Look for the persons of a plan again, in rows and in bytes; believes no journal.

    Without PLAN_FILE, that of the newest run. With --values, needs no plan, manifest or key. Files with the bytes
    of an earlier scan are not decoded again, except for a sample; --read-all and --values read everything."""
    settings = Settings(estate_file, state)
    if values is None:
        if places:
            raise UsageError("`--in` works only with `--values`", todo="leave one out, or give both")
        return _of_plan(plan_file, settings, read_all, fmt)
    if plan_file is not None:
        raise UsageError(
            "`--values` cannot be combined with a plan, because the plan has its own values",
            todo="leave out the plan, or `--values`",
        )
    return _of_values(values, places, settings, fmt)


def _of_values(values: TextIO, places: tuple[str, ...], settings: Settings, fmt: str) -> int:
    from pii_tracer.app.planless_value_search import search_values
    from reports.escape import visible

    with watching() as progress:
        found = search_values(values, places, settings, progress)
    click.echo(json.dumps(found.as_json(), sort_keys=True) if fmt == "json" else "\n".join(map(visible, found.lines())))
    return int(found.exit_code)


def known_by(reading: Reading) -> str:
    """By what files with the bytes of an earlier search are told."""
    read = reading.before - reading.by_store
    told = ["SHA-256" if not reading.by_store else f"SHA-256: {read}"] if read else []
    told += [f"the store's version and ETag: {reading.by_store}"] if reading.by_store else []
    return ", by ".join(told)


def _of_plan(plan_file: Path | None, settings: Settings, read_all: bool, fmt: str) -> int:
    from pii_tracer.app.plan_verification import verify as look

    with watching() as progress:
        found = look(settings, plan_file, read_all=read_all, show=progress)
    result = found.as_json()
    if fmt == "json":
        click.echo(json.dumps(result, sort_keys=True))
    else:
        for item in result["residue"][:50]:
            click.echo(f"residue: {item['copy']}: {item['file'] or '(rows)'}: {item['where']} ({item['form']})")
        for line in result["unverified"][:50]:
            click.echo(f"unverified: {line}")
        for line in result["not_asked"]:
            click.echo(f"not asked: {line}")
        for one in result["computed_again"]:
            click.echo(f"{one['copy']}: {one['proved']}")
        click.echo(
            f"{result['copies_erased']}/{counted(result['copies_total'], 'copy', 'copies')} without the person ·"
            f"{' ' + str(found.plan.totals.exempt) + ' kept by a hold ·' if found.plan.totals.exempt else ''}"
            f" residue {len(found.verdict.residue)} · unverified {len(result['unverified'])}"
        )
        if found.open_requests and len(found.plan.requests) > 1:
            asked = f"{len(found.open_requests):,} of {counted(len(found.plan.requests), 'request')}"
            click.echo(f"something is left, or may be, of {asked}: {first_of(found.open_requests, 5)}")
        if found.reading.left:
            click.echo(
                f"not decoded by their shape: {counted(found.reading.left, 'column chunk')}"
                f" in {counted(found.reading.shaped, 'file')},"
                f" {found.reading.drawn} of them decoded all the same as a sample · decoded: {found.reading.chunks}"
            )
        if found.reading.in_parts:
            click.echo(
                f"read in parts: {counted(found.reading.in_parts, 'object')}"
                f" · not read: pages of {counted(found.reading.unfetched, 'column chunk')},"
                f" {found.reading.refetched} of them read all the same as a sample"
                f" · the others when they were read, {found.reading.oldest:%Y-%m-%d %H:%M} UTC or later"
            )
        if found.reading.before:
            click.echo(
                f"read now: {counted(found.reading.now, 'file')}, {found.reading.again}"
                " of them as a sample · same bytes as when"
                f" they were read, {found.reading.oldest:%Y-%m-%d %H:%M} UTC or later:"
                f" {counted(found.reading.before, 'file')}"
                f", known by {known_by(found.reading)}"
            )
    return int(found.exit_code)
