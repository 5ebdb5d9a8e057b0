"""`readiness`: if somebody asked today, could you? For every morning, or a schedule at night."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.model.errors import ExitCode, UsageError


@click.command()
@estate_option
@state_option
@click.option("--as-of", help="the time of the reading, with a time zone  [default: now]")
@click.option(
    "--fail-under",
    type=click.IntRange(0, 100),
    help="exit 4 where the score is lower; nothing else then decides the exit code",
)
@click.option("--cost", is_flag=True, help="also estimate what erasing one person costs; lists all files once more")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="also write the report as an HTML page")
@click.option("--seal-canary", metavar="NAME", help="seal this canary's key from stdin, and print it")
@format_option("text", "json", "sarif", "prometheus")
def readiness(
    estate_file: Path,
    state: Path,
    as_of: str | None,
    fail_under: int | None,
    cost: bool,
    out: Path | None,
    seal_canary: str | None,
    fmt: str,
) -> int:
    """Say whether a request that comes in now could be answered (exit 3 where not).

    Shows what changed since the reading before, and adds this reading to the trend.
    """
    settings = Settings(estate_file, state)
    if seal_canary is not None:
        return _seal(settings, seal_canary)
    from pii_tracer.app.estate_readiness.new_reading import readiness as take

    with watching() as show:
        found = take(settings, as_of=moment(as_of), cost=cost, show=show)
    if out is not None:
        from pii_tracer.common.atomic_files import write_atomic
        from reports.readiness.readiness_html import render_readiness_html

        write_atomic(out, render_readiness_html(found).encode())
    if fmt == "json":
        click.echo(json.dumps(found.as_json(), indent=2))
    elif fmt == "sarif":
        from reports.exchange.readiness_sarif import render_readiness_sarif

        click.echo(render_readiness_sarif(found, str(estate_file)), nl=False)
    elif fmt == "prometheus":
        from reports.readiness.prometheus_metrics import render_metrics

        click.echo(render_metrics(found), nl=False)
    else:
        from reports.readiness.readiness_text import render_readiness_text

        click.echo(render_readiness_text(found), nl=False)
    if fail_under is not None:
        return int(ExitCode.POLICY_DENIED if found.score.points < fail_under else ExitCode.DONE)
    return int(found.exit_code)


def _seal(settings: Settings, name: str) -> int:
    from pii_tracer.app.estate_readiness.canary_search import seal_name

    value = sys.stdin.readline().strip()
    if not value:
        raise UsageError(
            "the key to seal is missing on standard input", where="stdin", todo="write the canary's key on one line"
        )
    click.echo(f"sealed:{settings.key().seal_value(value, seal_name(name)).hex()}")
    return int(ExitCode.DONE)
