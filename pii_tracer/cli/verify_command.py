"""`verify`: look for persons again, of a plan or from a list of values, and believe no journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from pii_tracer.app.execution.run_folder import choose_run
from pii_tracer.app.settings import Settings, moment
from pii_tracer.cli.options import estate_option, format_option, state_option
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.model.identities import Strategy

if TYPE_CHECKING:
    from pii_tracer.config.estate_file import Estate
    from pii_tracer.scan.search_workers import Searchers


@click.command()
@click.argument("plan_file", required=False, type=click.Path(path_type=Path))
@estate_option
@state_option
@click.option(
    "--values", type=click.File(encoding="utf-8-sig"), help="no plan: search for these, one a line; - is stdin"
)
@click.option("--in", "places", multiple=True, help="with --values: a folder, a file or s3://…  [default: the estate]")
@format_option("text", "json")
def verify(
    plan_file: Path | None, estate_file: Path, state: Path, values: TextIO | None, places: tuple[str, ...], fmt: str
) -> int:
    """Look for the persons of a plan again, in rows and in bytes; believes no journal.

    Without PLAN_FILE, that of the newest run. With --values, needs no plan, manifest or key."""
    settings = Settings(estate_file, state)
    if values is None:
        if places:
            raise UsageError("`--in` goes with `--values`", todo="leave one out, or give both")
        return _of_plan(plan_file, settings, fmt)
    if plan_file is not None:
        raise UsageError("a plan has values of its own", todo="leave out the plan, or `--values`")
    return _of_values(values, places, settings, fmt)


def _of_values(values: TextIO, places: tuple[str, ...], settings: Settings, fmt: str) -> int:
    from pii_tracer.app.value_search import (
        Wanted,
        place_of,
        places_of,
        read_values,
        search,
    )
    from pii_tracer.scan.search_workers import THREADS
    from reports.escape import visible
    from reports.progress import Progress

    keys = read_values(values, getattr(values, "name", "-"))
    named = Wanted(tuple(map(place_of, places)))
    estate = settings.estate() if settings.estate_file.exists() or not places else None
    with Progress() as progress:
        progress.stage("verify: bytes")
        wanted = places_of(estate, settings.base) if estate and not places else named
        searchers = _searchers(estate, settings.base, progress.warn) if estate else THREADS
        found = search(keys, wanted, estate, settings.base, searchers, progress.step)
    click.echo(json.dumps(found.as_json(), sort_keys=True) if fmt == "json" else "\n".join(map(visible, found.lines())))
    return int(found.exit_code)


def _searchers(estate: Estate, base: Path, warn: Callable[[str], None]) -> Searchers:
    from executors.engine.spark_session import open_session
    from pii_tracer.verify.cluster_byte_search import searchers_of

    return searchers_of(estate.spark, lambda: open_session(estate, base), warn)


def _of_plan(plan_file: Path | None, settings: Settings, fmt: str) -> int:
    from executors.engine.s3a_settings import reaches_s3
    from executors.engine.spark_session import open_session
    from pii_tracer.app.verification import Verification
    from pii_tracer.cli.plan_commands import manifest_path
    from pii_tracer.model.plan import HELD
    from pii_tracer.review.plan_file import load_plan
    from pii_tracer.review.sealed_manifest import KeyRing
    from pii_tracer.verify.verdicts import CopyVerdict, RunVerdict
    from reports.progress import Progress

    digest = None
    if plan_file is None:
        folder = choose_run(settings.state, None, unfinished=False)
        settings, plan_file, digest = folder.settings(), Path(folder.info().plan_file), folder.info().plan_digest
        if folder.info().demo:
            from pii_tracer.cli.demo_command import use_demo_credentials

            use_demo_credentials()
    if not plan_file.exists():
        raise UsageError("the plan file is missing", where=str(plan_file), todo="name it")
    loaded = load_plan(plan_file)
    if digest not in (None, loaded.digest):
        raise UsageError(
            "the plan file is not the one that the newest run was approved for",
            where=str(plan_file),
            todo="put it back, or name the plan to verify",
        )
    plan = loaded.plan
    keyring = KeyRing.open(manifest_path(plan_file), plan.subjects_digest, settings.key())
    estate = settings.estate()
    progress = Progress()
    verification = Verification(
        plan=plan,
        estate=estate,
        base=settings.base,
        keys=keyring.key_sets,
        spark=lambda: open_session(estate, settings.base, s3=reaches_s3(plan)),
        now=lambda: moment(None),
        warn=progress.warn,
    )
    verdicts = []
    with progress:
        progress.stage("verify: rows and bytes")
        for copy in plan.copies:
            if copy.strategy in (Strategy.EXEMPT, Strategy.CONFIRM):
                continue  # what a hold keeps is no residue, and nobody can look into a backup
            progress.step(copy.id)
            verdicts.append(verification.look(copy))
        progress.step("datasets that are no copies")
        verdicts += [CopyVerdict(copy_id=beside.copy_id, bytes=beside) for beside in verification.elsewhere()]
    verdict = RunVerdict(copies=tuple(verdicts))
    residue = verdict.residue
    counted = [c for c in plan.copies if c.origin is None]
    erased = set(verdict.erased) - {c.id for c in plan.copies if c.strategy in HELD}
    result: dict[str, Any] = {
        "plan_id": plan.plan_id,
        "state": "complete" if plan.complete and not residue and not verdict.unverified else "partial",
        "copies_total": len(counted),
        "copies_erased": sum(c.id in erased for c in counted),
        "copies_exempt": plan.totals.exempt,
        "residue": [r.as_json() for r in residue],
        "unverified": list(verdict.unverified),
        "not_asked": list(verdict.not_asked),
        "rows_erased": None,
        "bystander_rows_lost": None,
        "waiting_until": None,
        "deletion_log": None,
        "attestation": None,
        "report": None,
    }
    if fmt == "json":
        click.echo(json.dumps(result, sort_keys=True))
    else:
        for item in result["residue"][:50]:
            click.echo(f"residue: {item['copy']}: {item['file'] or '(rows)'}: {item['where']} ({item['form']})")
        for line in result["unverified"][:50]:
            click.echo(f"unverified: {line}")
        for line in result["not_asked"]:
            click.echo(f"not asked: {line}")
        click.echo(
            f"{result['copies_erased']}/{result['copies_total']} copies without the person ·"
            f"{' ' + str(plan.totals.exempt) + ' kept by a hold ·' if plan.totals.exempt else ''}"
            f" residue {len(residue)} · unverified {len(verdict.unverified)}"
        )
    if residue:
        return int(ExitCode.RESIDUE)
    if verdict.unverified:
        return int(ExitCode.PARTIAL)
    return int(ExitCode.DONE if plan.complete else ExitCode.INCOMPLETE)
