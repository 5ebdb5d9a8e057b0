"""`serve`: a local web page over the state folder. It changes nothing."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError

VARIABLE = "PII_TRACER_SERVE_TOKEN"
_SHORTEST_TOKEN = 16


@click.command()
@estate_option
@state_option
@click.option("--listen", default="127.0.0.1:8182", show_default=True, help="HOST:PORT; beyond loopback needs a token")
@click.option("--known-as", multiple=True, metavar="NAME", help="a further host name that the page is called by")
@click.option(
    "--plans",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="a further folder with plan files",
)
def serve(estate_file: Path, state: Path, listen: str, known_as: tuple[str, ...], plans: tuple[Path, ...]) -> int:
    """Show plans, runs, readings, lineage and proofs of the state folder in a browser, read-only. Ends with Ctrl-C.

    PII_TRACER_SERVE_TOKEN: what browsers and programs have to give, 16 characters at least; needed beyond loopback.

    \b
    Example:
      pii-tracer serve
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError("the address is not HOST:PORT", where="--listen", todo="write it as 127.0.0.1:8182")
    token = os.environ.get(VARIABLE)
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError("the token is too short, or not plain ASCII", where=VARIABLE, todo=_how())
    try:
        from pii_tracer.web.server import is_loopback, listening, serve_pages
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"the package {missing.name} is not installed", todo="pip install 'pii-tracer[serve]'"
        ) from None
    with listening(host.strip("[]"), int(port)) as at:
        bound, taken = at.getsockname()[:2]
        if token is None and not is_loopback(bound):
            raise UsageError("beyond loopback, the page needs a token", where=VARIABLE, todo=_how())
        click.echo(f"listening on http://{f'[{bound}]' if ':' in bound else bound}:{taken}/", err=True)
        names = (host.strip("[]"), bound, *known_as)
        serve_pages(Settings(estate_file, state), plans, at, names, token, partial(click.echo, err=True))
    return int(ExitCode.DONE)


def _how() -> str:
    return f"set it to {_SHORTEST_TOKEN} characters at least, e.g. of `openssl rand -hex 32`"
