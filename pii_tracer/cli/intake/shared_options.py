"""Options that several commands of the request store have."""

from __future__ import annotations

import click

from pii_tracer.model.errors import UsageError

by_option = click.option("--by", required=True, help="who decides it")
reason_option = click.option("--reason", required=True, help="why, without anything of the person")


def column_pairs(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """FIELD=NAME pairs. Raises `UsageError` where one is none."""
    pairs = [text.partition("=") for text in given]
    if any(not (field and name) for field, _, name in pairs):
        raise UsageError(
            "a column must be written as FIELD=NAME", where="--column", todo="e.g. `--column key=customer_no`"
        )
    return {field: name for field, _, name in pairs}
