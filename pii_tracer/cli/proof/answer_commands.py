"""`attest answer` and `attest verify-answer`: what a person is told of a request, at whatever point its erasure is."""

from __future__ import annotations

from pathlib import Path

import click

from pii_tracer.app.settings import Settings
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError


@click.command()
@click.argument("run", required=False)
@estate_option
@state_option
@click.option("--request", help="the request that is answered")
@click.option("--all", "every", is_flag=True, help="answer every request of the plan, each in files of its own")
@click.option(
    "--key", type=click.Path(path_type=Path), help="the attester's public key (PEM)  [default: as certificate]"
)
@click.option("--out", type=click.Path(path_type=Path), help="folder to write to  [default: the run's proofs/]")
@click.option("--pdf", is_flag=True, help="also print each page as PDF, through an installed Chromium")
def answer(
    run: str | None,
    estate_file: Path,
    state: Path,
    request: str | None,
    every: bool,
    key: Path | None,
    out: Path | None,
    pdf: bool,
) -> int:
    """Write a dated, signed answer to a request of a RUN: what is erased, what is not, and until when.

    RUN is a plan's id, or a plan file (.plan.json) that was not applied yet. Without it, the request store is asked
    for the request. Unlike a certificate, there is always an answer. It says that something is erased only where the
    run has verified it.

    \b
    Example:
      pii-tracer attest answer plan-1ec2010e57a0 --request REQ-2026-0117
    """
    from pii_tracer.app.proof.request_answers import write_answers

    if every == (request is not None):
        raise UsageError(
            "exactly one of `--request` and `--all` is needed", where="--request, --all", todo="give one of the two"
        )
    for path in write_answers(Settings(estate_file, state), run, request=request, key=key, out=out, pdf=pdf):
        click.echo(str(path))
    return int(ExitCode.DONE)


@click.command("verify-answer")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="the attester's public key (PEM); again where it was changed",
)
@format_option("text", "json")
def verify_answer(file: Path, key: tuple[Path, ...], fmt: str) -> int:
    """Check the signature of an answer, and show what it says."""
    from pii_tracer.app.proof.request_answers import read_answer
    from reports.run.answer import answer_lines

    found = read_answer(file, key)
    click.echo(found.model_dump_json(indent=2) if fmt == "json" else "\n".join(answer_lines(found)))
    return int(ExitCode.DONE)
