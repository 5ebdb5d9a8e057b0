"""`requests`: what people ask for, taken in, listed, shown, narrowed, withdrawn, refused, given back by a plan."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

import click

from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.intake.drop_commands import add_drop, answers, decide
from pii_tracer.cli.intake.shared_options import by_option, column_pairs, reason_option
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.common.plurals import counted
from pii_tracer.intake.requests import RequestState
from pii_tracer.model.errors import ExitCode, UsageError


@click.group()
def requests() -> None:
    """The request store: requests from their receipt to the proof. It seals values of persons, and never shows them."""


requests.add_command(add_drop)
requests.add_command(answers)
requests.add_command(decide)


def _not_taken(file: Path, line: int, why: str) -> None:
    click.echo(f"{file}, line {line}: not taken: {why}", err=True)


@requests.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option("--subject", default="", help="the kind of person, for rows that do not say it")
@click.option("--law", default="", help="the law, for rows that do not say it")
@click.option("--received", default="", help="when they came in, with a time zone, for rows that do not say it")
@click.option("--verified", default="", help="how the persons were verified, in one word, for rows that do not say it")
@click.option("--delimiter", default=",", show_default=True, help="of a CSV file")
@click.option("--encoding", default="utf-8", show_default=True, help="of a CSV file")
@click.option(
    "--column", "columns", multiple=True, callback=column_pairs, help="FIELD=NAME: what a field's column is called"
)
@click.option("--ignore-other-columns", "ignore", is_flag=True, help="ignore columns that belong to no field")
@format_option("text", "json")
def add(
    files: tuple[Path, ...],
    estate_file: Path,
    state: Path,
    subject: str,
    law: str,
    received: str,
    verified: str,
    delimiter: str,
    encoding: str,
    columns: dict[str, str],
    ignore: bool,
    fmt: str,
) -> int:
    """Take the requests in FILES in: a request as .yaml, a list as .parquet or, under any other name, as CSV.

    Columns are key, id, law, received, subject, verified, right; only key has to be there. A row that is wrong is named
    on stderr by its line, and the others are taken: exit 7. The same file again adds nothing.

    \b
    Example:
      pii-tracer requests add today.csv --subject customer --law GDPR \\
          --received 2026-11-26T00:00:00+01:00 --column key=customer_no
    """
    from pii_tracer.app.intake.request_lists import add_requests
    from pii_tracer.intake.list_files import Form
    from reports.requests_text import added_lines

    settings = Settings(estate_file, state)
    form = Form("\t" if delimiter == "\\t" else delimiter, encoding, columns, ignore)
    given = {"subject": subject, "law": law, "received": received, "verified": verified}
    done = []
    for file in files:
        done.append(
            add_requests(
                settings,
                file,
                form=form,
                given={name: text for name, text in given.items() if text},
                tell=partial(_not_taken, file),
            )
        )
        if fmt == "text":
            click.echo("\n".join(added_lines(done[-1])))
    if fmt == "json":
        from dataclasses import asdict

        click.echo(json.dumps([asdict(one) for one in done], indent=2))
    return int(ExitCode.PARTIAL if any(one.refused for one in done) else ExitCode.DONE)


@requests.command("list")
@estate_option
@state_option
@click.option(
    "--in-state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in RequestState]),
    help="may be repeated",
)
@click.option("--due-before", help="due before this time, with a time zone")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="most that are listed")
@format_option("text", "json")
def list_(estate_file: Path, state: Path, states: tuple[str, ...], due_before: str | None, limit: int, fmt: str) -> int:
    """List requests, the one that is due first at the beginning.

    \b
    Example:
      pii-tracer requests list --in-state received --in-state carried_over --due-before 2026-12-24T00:00:00Z
    """
    from itertools import islice

    from pii_tracer.app.intake.request_states import count_requests, list_requests
    from reports.requests_text import print_requests, request_json

    settings = Settings(estate_file, state)
    before = moment(due_before) if due_before else None
    wanted = tuple(RequestState(name) for name in states)
    found = list(islice(list_requests(settings, states=wanted, due_before=before), limit))
    counts = count_requests(settings)
    if fmt == "json":
        told = {"counts": counts, "requests": [request_json(one) for one in found]}
        click.echo(json.dumps(told, indent=2))
    else:
        print_requests(found, counts, moment(None), sys.stdout)
    return int(ExitCode.DONE)


@requests.command()
@estate_option
@state_option
@click.option("--policy", type=click.Path(path_type=Path), help="[default: policy.yaml beside the estate file]")
@click.option("--as-of", help="the time to count from  [default: now]")
@format_option("text", "json")
def forecast(estate_file: Path, state: Path, policy: Path | None, as_of: str | None, fmt: str) -> int:
    """Show in which batches (`batches` of the policy) the waiting requests will be. If some cannot be in time, or are
    in no batch, say why: exit 7.

    \b
    Example:
      pii-tracer requests forecast
    """
    from dataclasses import asdict

    from pii_tracer.app.intake.due_requests_plan import forecast_requests
    from reports.requests_text import forecast_lines

    found = forecast_requests(Settings(estate_file, state), policy=policy, as_of=moment(as_of))
    if fmt == "json":
        click.echo(json.dumps(asdict(found), indent=2, default=lambda at: at.isoformat()))
    else:
        click.echo("\n".join(forecast_lines(found.batches, found.unplanned)))
    return int(ExitCode.PARTIAL if found.misses else ExitCode.DONE)


@requests.command()
@click.argument("request")
@estate_option
@state_option
@format_option("text", "json")
def show(request: str, estate_file: Path, state: Path, fmt: str) -> int:
    """Show all that is known of one REQUEST (its id, or that of a further receipt); never the person's value.

    \b
    Example:
      pii-tracer requests show REQ-2026-0117
    """
    from pii_tracer.app.intake.request_states import show_request
    from reports.requests_text import print_shown, shown_json

    shown = show_request(Settings(estate_file, state), request)
    if fmt == "json":
        click.echo(json.dumps(shown_json(shown), indent=2))
    else:
        print_shown(shown, sys.stdout)
    return int(ExitCode.DONE)


@requests.command()
@click.argument("request")
@estate_option
@state_option
@by_option
@reason_option
def withdraw(request: str, estate_file: Path, state: Path, by: str, reason: str) -> int:
    """Withdraw a REQUEST, because its person asks for that. `apply` then refuses each plan that contains it.

    \b
    Example:
      pii-tracer requests withdraw REQ-2026-0117 --by "Meera Iyer" --reason "she keeps her account"
    """
    from pii_tracer.app.intake.request_states import withdraw_request
    from reports.requests_text import ended_lines

    ended = withdraw_request(Settings(estate_file, state), request, by=by, reason=reason)
    click.echo("\n".join(ended_lines(ended.request, ended.released, "withdrawn")))
    return int(ExitCode.DONE)


@requests.command()
@click.argument("request")
@estate_option
@state_option
@by_option
@reason_option
def refuse(request: str, estate_file: Path, state: Path, by: str, reason: str) -> int:
    """Do not grant a REQUEST, with the reason.

    \b
    Example:
      pii-tracer requests refuse REQ-2026-0117 --by "Meera Iyer" --reason "identity could not be verified"
    """
    from pii_tracer.app.intake.request_states import refuse_request
    from reports.requests_text import ended_lines

    ended = refuse_request(Settings(estate_file, state), request, by=by, reason=reason)
    click.echo("\n".join(ended_lines(ended.request, ended.released, "refused")))
    return int(ExitCode.DONE)


@requests.command()
@click.argument("request")
@estate_option
@state_option
@click.option("--informed", required=True, help="when the person was informed, with the reasons; with a time zone")
@by_option
@reason_option
def extend(request: str, estate_file: Path, state: Path, informed: str, by: str, reason: str) -> int:
    """Take the longer time that the law of a REQUEST gives, once, where its person was informed within the first one.

    \b
    Example:
      pii-tracer requests extend REQ-2026-0117 --informed 2026-12-11T10:00:00+05:30 \\
          --by "Meera Iyer" --reason "copies in eleven archives"
    """
    from pii_tracer.app.intake.request_states import extend_request
    from reports.requests_text import extended_line

    done = extend_request(Settings(estate_file, state), request, informed=moment(informed), by=by, reason=reason)
    click.echo(extended_line(done))
    return int(ExitCode.DONE)


@requests.command()
@click.argument("request")
@estate_option
@state_option
@click.option("--keep", multiple=True, help="a whole dataset, named as in a hold; may be repeated")
@click.option("--take-back", multiple=True, help="a name that was wrong, and keeps nothing any more; may be repeated")
@click.option("--asked", help="when the person asked for it, with a time zone  [default: now]")
@by_option
@reason_option
def narrow(
    request: str,
    estate_file: Path,
    state: Path,
    keep: tuple[str, ...],
    take_back: tuple[str, ...],
    asked: str | None,
    by: str,
    reason: str,
) -> int:
    """Narrow a REQUEST, because its person keeps some datasets. All else is erased. Not while a plan contains it.

    \b
    Example:
      pii-tracer requests narrow REQ-2026-0117 --keep prod.orders --by "Meera Iyer" --reason "her warranties"
    """
    from pydantic import ValidationError

    from pii_tracer.app.intake.request_states import narrow_request, others_of_key, show_request
    from pii_tracer.intake.kept_scopes import MOST_KEPT, Wish
    from reports.requests_text import narrowed_line

    try:
        wish = Wish(keep=keep, take_back=take_back)
    except ValidationError:
        raise UsageError(
            "a name in `--keep` or `--take-back` is empty, too long, or has a control character; or there are too "
            "many names",
            where="--keep, --take-back",
            todo=f"write each name as in a hold; give {MOST_KEPT} at most",
        ) from None
    settings, at = Settings(estate_file, state), moment(asked) if asked else None
    done = narrow_request(settings, request, wish, by=by, reason=reason, asked=at)
    click.echo(narrowed_line(done, show_request(settings, done.id).narrowings))
    for other in others_of_key(settings, done.id):
        click.echo(
            f"{other.id} has the same key as `{other.kind}`, and keeps nothing by this: narrow it, too, if it is the"
            " same person",
            err=True,
        )
    return int(ExitCode.DONE)


@requests.command()
@click.argument("plan")
@estate_option
@state_option
@by_option
@reason_option
def release(plan: str, estate_file: Path, state: Path, by: str, reason: str) -> int:
    """Give up a PLAN (its id): its requests wait for another one, and `apply` and `resume` refuse it from now on.

    \b
    Example:
      pii-tracer requests release plan-1ec2010e57a0 --by "Meera Iyer" --reason "the estate file has changed"
    """
    from pii_tracer.app.intake.request_states import release_plan

    freed = release_plan(Settings(estate_file, state), plan, by=by, reason=reason)
    click.echo(f"{counted(len(freed), 'request waits', 'requests wait')} for another plan")
    return int(ExitCode.DONE)


_SHORTEST_TOKEN = 16


@requests.command("serve")
@estate_option
@state_option
@click.option("--listen", default="127.0.0.1:8181", show_default=True, help="HOST:PORT")
def serve_(listen: str, estate_file: Path, state: Path) -> int:
    """Take requests over HTTP, show their states, narrow and withdraw them. Ends with Ctrl-C.

    PII_TRACER_REQUESTS_TOKEN: the bearer token that clients give; always needed, 16 characters at least.

    \b
    Example:
      PII_TRACER_REQUESTS_TOKEN=… pii-tracer requests serve --listen 127.0.0.1:8181
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError("the address is not HOST:PORT", where="--listen", todo="write it as 127.0.0.1:8181")
    token = os.environ.get("PII_TRACER_REQUESTS_TOKEN", "")
    if len(token) < _SHORTEST_TOKEN or not token.isascii():
        raise UsageError(
            "the client token is missing or too short",
            where="PII_TRACER_REQUESTS_TOKEN",
            todo=f"set it to {_SHORTEST_TOKEN} characters at least, e.g. of `openssl rand -hex 32`",
        )
    try:
        from pii_tracer.http_api.server import listening, serve
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"the package {missing.name} is not installed", todo="pip install 'pii-tracer[serve]'"
        ) from None
    with listening(host.strip("[]"), int(port)) as at:
        bound, taken = at.getsockname()[:2]
        click.echo(f"listening on http://{f'[{bound}]' if ':' in bound else bound}:{taken}/v1/requests", err=True)
        serve(Settings(estate_file, state), at, token, partial(click.echo, err=True))
    return int(ExitCode.DONE)
