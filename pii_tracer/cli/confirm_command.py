"""`confirm`: a person says that a step was done which nobody here can look at."""

from __future__ import annotations

from pathlib import Path

import click

from pii_tracer.cli.options import state_option
from pii_tracer.model.errors import ExitCode


@click.command()
@click.argument("step")
@click.option("--run", "run", help="the run (a plan id)  [default: the newest that is not complete]")
@state_option
@click.option("--evidence", required=True, type=click.Path(path_type=Path), help="file that shows it; only hashed")
@click.option("--by", "name", required=True, help="who confirms, as in the trusted file")
@click.option("--role", required=True, help="in which role, as in the trusted file")
@click.option("--said", required=True, help="what was done")
@click.option("--began", help="when the job began by which tables were computed again, with its time zone")
@click.option("--key", "key_file", type=click.Path(path_type=Path), help="Ed25519 private key (PEM)")
@click.option("--ssh-key", type=click.Path(path_type=Path), help="or an SSH key, e.g. ~/.ssh/id_ed25519")
def confirm(
    step: str,
    run: str | None,
    state: Path,
    evidence: Path,
    name: str,
    role: str,
    said: str,
    began: str | None,
    key_file: Path | None,
    ssh_key: Path | None,
) -> int:
    """Sign that STEP (or the name of a backup, or a task's gap) was done. `pii-tracer resume` then takes it as a
    person's word. The name of a recipient that was informed (`inform`) signs that it confirmed."""
    from pii_tracer.app.execution.step_confirmation import confirm_step

    path = confirm_step(
        state,
        step,
        run=run,
        evidence=evidence,
        name=name,
        role=role,
        said=said,
        began=began,
        key=key_file,
        ssh_key=ssh_key,
    )
    click.echo(str(path))
    return int(ExitCode.DONE)
