"""`requests add-drop`, `answers` and `decide`: the lists of California's DROP, and what is answered of them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.intake.shared_options import by_option, column_pairs, reason_option
from pii_tracer.cli.options import estate_option, format_option, state_option, watching
from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import ExitCode


@click.command("add-drop")
@click.argument("file", type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--subject", required=True, help="the kind of person whom the lists are matched against")
@click.option("--received", required=True, help="when the lists were downloaded, with a time zone")
@click.option(
    "--column", "columns", multiple=True, callback=column_pairs, help="LIST=NAME: the source's column of a list"
)
@click.option("--skip-list", "skip", multiple=True, help="leave a list out, which is then not answered")
@format_option("text", "json")
def add_drop(
    file: Path,
    estate_file: Path,
    state: Path,
    subject: str,
    received: str,
    columns: dict[str, str],
    skip: tuple[str, ...],
    fmt: str,
) -> int:
    """Match the hashed lists of California's DROP (the ZIP that it gives) against the source, and take in who is found.

    Lists of e-mail addresses and phones are matched. The same ZIP again adds nothing, and looks again for those that
    were not found.

    \b
    Example:
      pii-tracer requests add-drop download.zip --subject customer --received 2026-11-26T00:00:00-08:00
    """
    from dataclasses import asdict

    from pii_tracer.app.intake.drop_lists import add_drop as add
    from reports.escape import visible
    from reports.requests_text import matched_lines

    with watching() as progress:
        done = add(
            Settings(estate_file, state),
            file,
            subject=subject,
            received=moment(received),
            columns=columns,
            skip=skip,
            tell=lambda member, line, why: click.echo(f"{visible(member)}, line {line}: not taken: {why}", err=True),
            show=progress,
        )
    click.echo(json.dumps(asdict(done), indent=2) if fmt == "json" else "\n".join(matched_lines(done)))
    return int(ExitCode.PARTIAL if done.refused or done.shared else ExitCode.DONE)


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--open", "undecided", is_flag=True, help="also list the items that somebody has to decide")
def answers(out: Path, estate_file: Path, state: Path, undecided: bool) -> int:
    """Write the file that answers DROP's lists: 2 exempted, 3 deleted, 4 opted out, 5 not found. What is open is not in
    it.

    \b
    Example:
      pii-tracer requests answers answers.csv
    """
    from pii_tracer.app.intake.drop_lists import undecided_items, write_answers
    from reports.requests_text import answered_line

    settings = Settings(estate_file, state)
    click.echo(answered_line(write_answers(settings, out)))
    for item in undecided_items(settings) if undecided else ():
        click.echo(f"{item}: several persons have this identifier; `requests decide {item}`")
    return int(ExitCode.DONE)


@click.command()
@click.argument("items", nargs=-1, required=True)
@estate_option
@state_option
@click.option(
    "--status",
    type=click.Choice(["opted-out", "exempted"]),
    required=True,
    help="opted-out: all persons with the identifier were opted out of sale and sharing; exempted: the law exempts all",
)
@by_option
@reason_option
def decide(items: tuple[str, ...], estate_file: Path, state: Path, status: str, by: str, reason: str) -> int:
    """Record what a named person decided of ITEMS of DROP whose identifier belongs to several persons.

    `answers` then gives them the status 4 (opted out) or 2 (exempted). `requests answers --open` lists such items.

    \b
    Example:
      pii-tracer requests decide Item00000002 --status opted-out --by "Meera Iyer" --reason "both were opted out"
    """
    from pii_tracer.app.intake.drop_lists import decide_items

    done = decide_items(Settings(estate_file, state), items, status=status, by=by, reason=reason)
    click.echo(f"{counted(done, 'work item')} decided: {status}")
    return int(ExitCode.DONE)
