"""`pii-tracer demo`: a person is erased from a realistic lakehouse, step by step, with proof."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pii_tracer.cli.options import state_option, watching


@click.command()
@state_option
def demo(state: Path) -> int:
    """Build a lakehouse of a payments company, erase user 8841302 from it, and prove it."""
    from pii_tracer.app.demo import STAGES, run_demo

    with watching(STAGES) as progress:
        return int(run_demo(state, click.echo, partial(click.echo, err=True), progress))
