"""`pii-tracer`: commands are loaded when they are called, so that `--help` starts fast and imports no Spark."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from pii_tracer import __version__
from pii_tracer.common.atomic_files import system_reason
from pii_tracer.common.unexpected_errors import how_to_see, place_of, shows_trace
from pii_tracer.model.errors import ExitCode, PiiTracerError
from reports.watch.command_watch import CommandWatch

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("estate_commands", "write a first estate file, policy and keys"),
    "doctor": ("doctor_command", "say what is missing on this machine, and how to fix it"),
    "demo": ("demo_command", "erase a person from a realistic lakehouse, with proof"),
    "parse": ("lineage.harvest_commands", "column lineage of SQL, as JSON lines"),
    "harvest": ("lineage.harvest_commands", "events, SQL, dbt and query logs into the lineage graph"),
    "receive": ("lineage.harvest_commands", "take OpenLineage events over HTTP into the event log"),
    "trace": ("lineage.trace_command", "where a table or column comes from or goes to"),
    "gaps": ("lineage.trace_command", "where lineage is not complete, and what would close it"),
    "carriage": ("lineage.carriage_command", "where is the key: how every dataset carries the person"),
    "review": ("lineage.review_command", "check whether changed SQL models make persons harder to find and erase"),
    "inventory": ("estate_commands", "what really exists in the estate"),
    "estimate": ("estate_commands", "how long an erasure would take, and what it would cost, from listings alone"),
    "readiness": ("readiness_command", "if somebody asked today, could you? score, changes, canaries"),
    "serve": ("serve_command", "show plans, runs, readings, lineage and proofs in a browser, read-only"),
    "kept": ("lakefs_kept_command", "what keeps an object in lakeFS alive, until when, and what lets it go"),
    "requests": ("intake.requests_commands", "take requests in, list them, withdraw and refuse them"),
    "laws": ("laws_command", "what laws say of erasures: deadlines, notices, records, with their sources"),
    "plan": ("plan_commands", "make the erasure plan for one or more requests"),
    "show": ("plan_commands", "show a plan for people"),
    "check": ("check_command", "check a plan against the policy"),
    "diff": ("diff_command", "what changed between two plans"),
    "approve": ("plan_commands", "sign the exact bytes of a plan"),
    "drift": ("plan_commands", "compare a plan's preconditions with the world"),
    "apply": ("run_commands", "run an approved plan"),
    "inform": ("inform_command", "inform the recipients of the data whom a run erases"),
    "confirm": ("confirm_command", "sign that what nobody here can look at was done"),
    "status": ("run_commands", "how far a run has come"),
    "resume": ("run_commands", "go on with an interrupted run"),
    "verify": ("verify_command", "look for the persons, in rows and in bytes"),
    "close": ("close_command", "destroy the persons' values that a run needed"),
    "recheck": ("recheck_command", "look whether erased persons are back, and holds have lapsed"),
    "suppressed": ("suppressed_keys_command", "say which keys belong to erased persons and must not be loaded"),
    "attest": ("proof.attest_commands", "check an attestation, prove one object, write the certificate"),
    "log": ("proof.deletion_log_command", "the deletion log: look into it, export it, prune it"),
    "report": ("proof.attest_commands", "write the report of a run again"),
    "retention": ("retention.retention_commands", "retention classes: check tables and DDL, enforce, sweep"),
    "completion": ("completion", "shell completion"),
}


class LazyGroup(click.Group):
    """Knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"pii_tracer.cli.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pii-tracer")
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    envvar="PII_TRACER_LOG",
    default="text",
    show_default=True,
    expose_value=False,
    help="what standard error gets: text for people, or JSON lines for programs",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Find every copy of a person in a lakehouse, plan the erasure, run it, prove it.

    Exit codes: 0 done, 1 error, 2 usage, 3 plan incomplete, 4 policy denied, 5 not approved, 6 drift,
    7 partial (can be resumed), 8 waiting, 9 residue found.
    """
    context.ensure_object(CommandWatch).name(context.invoked_subcommand or "")


def main(argv: list[str] | None = None) -> None:
    """Entry point: errors become a message for people on stderr and an exit code."""
    _write_utf8()
    sys.exit(run(argv))


def _write_utf8() -> None:
    """Whatever the terminal's locale is: a sign that it lacks must not end a run that is done with an error, and JSON
    is UTF-8. Names that are not UTF-8 are shown escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def run(argv: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    watch, code = CommandWatch(), int(ExitCode.ERROR)
    if _log_kind(sys.argv[1:] if argv is None else argv) == "json":
        watch.log_as_json()
    try:
        code = _run(argv, watch)
    finally:
        watch.end(code)
    return code


def _log_kind(argv: Sequence[str]) -> str:
    """What `--log` says, before the words are read: that they are wrong is a line of the log, too."""
    kind = os.environ.get("PII_TRACER_LOG", "")
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        if word == "--log":
            kind = following
        elif word.startswith("--log="):
            kind = word.removeprefix("--log=")
        elif not word.startswith("-") and word != kind:
            break  # the command, whose options are its own
    return kind


def _run(argv: list[str] | None, watch: CommandWatch) -> int:
    try:
        result: Any = cli.main(args=argv, prog_name="pii-tracer", standalone_mode=False, obj=watch)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        if not watch.error("interrupted"):
            click.echo("interrupted", err=True)
        return int(ExitCode.ERROR)
    except click.ClickException as error:
        if not watch.error(error.format_message()):
            error.show()
        return error.exit_code
    except PiiTracerError as error:
        if not watch.error(error.what, error.where, error.todo):
            click.echo(f"error: {error}", err=True)
        return int(error.exit_code)
    except SystemExit as stop:  # of click, where a pipe broke: nobody reads the result, good or not
        watch.error("nobody reads the output any more")
        return stop.code if isinstance(stop.code, int) else int(ExitCode.ERROR)
    except Exception as error:
        return _unexpected(error, watch)
    return int(result) if isinstance(result, int) else int(ExitCode.DONE)


def _unexpected(error: Exception, watch: CommandWatch) -> int:
    """Messages of engines can quote the data they choked on, so only the kind of error and our own line are told."""
    if shows_trace():
        if watch.error(f"unexpected {type(error).__name__}", place_of(error)):
            traceback.print_exception(error)
            return int(ExitCode.ERROR)
        raise error
    where = place_of(error)
    reason = system_reason(error)
    told = f"the system refuses: {reason}" if reason else f"unexpected {type(error).__name__}"
    again = "fix that (space, rights, the device), then `pii-tracer resume` or the same again"
    todo = again if reason else how_to_see()
    if not watch.error(told, where, todo):
        click.echo(f"error: {told}\n  where: {where}\n  next:  {todo}", err=True)
    return int(ExitCode.ERROR)


if __name__ == "__main__":
    main()
