"""Before anything is erased: a table that is going to be rebuilt must be what its recorded query gives.

A rebuild replaces the whole table by what the query gives from the erased source. Rows that the source cannot give any
more (it keeps thirty days, the table keeps years), or that another statement wrote, would be gone for good, and they
are other people's. While the source still stands as the job read it, both sides can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from executors.context import ExecutionContext
from executors.engine.rebuild_from_query import rows_in, unlike
from executors.engine.sql_names import quote
from executors.formats.registry import support_for
from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.model.errors import Refused, RunError
from pii_tracer.model.plan import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SAME = {"double": 1e-9, "float": 1e-6}
"""How far sums may be apart, as a share of them: their last digits depend on the order in which rows were added."""


@dataclass(frozen=True)
class Difference:
    """standing: rows of the table that its query does not give. given: rows of the query that do not stand there."""

    standing: int
    given: int


def refuse_losses(
    ctx: ExecutionContext,
    steps: Iterable[Step],
    say: Callable[[str], None],
    stop: Callable[[str], None] = lambda why: None,
) -> None:
    """Compare every table that is going to be rebuilt with its recorded query, from the sources as they stand.

    To be asked before the first step of a run only: once the source is erased, they differ. say: is told what is
    compared now. stop: is told of a table, before the next one, that it is refused.

    Raises:
        Refused: a table holds other rows than its query gives, or the query does not fit it or does not run.
        RunError: Spark does not start, which is not a matter of any table.
    """
    rebuilds = [step for step in steps if step.action in actions_with(Role.REBUILDS)]
    if rebuilds:
        ctx.open()
    against: dict[str, str] = {}
    for at, step in enumerate(rebuilds, 1):
        name = str(step.parameters.get("table") or step.parameters["location"])
        say(f"comparing {name} with the result of its recorded statement ({at} of {len(rebuilds)})")
        why = _against(ctx, step, name)
        if why:
            against[name] = why
            stop("refused")
    if against:
        say(f"refused: {', '.join(against)}")  # so that the error's mark stands at these, and not at the last compared
        raise Refused(
            "a rebuild would lose rows of other people; the run did not start. " + "; ".join(against.values()),
            todo=(
                "if a table is only out of date, run its job, then plan again. If it contains rows that its sources "
                "no longer have, or rows of a different statement, keep the table by a hold, or leave it out "
                "(`--only`). Or let the job write the key, so that a step can delete single rows, then plan again"
            ),
        )


def _against(ctx: ExecutionContext, step: Step, name: str) -> str | None:
    """Why a rebuild must not begin; None where table and query are alike."""
    try:
        found = compared(ctx, step)
    except RunError as error:
        return f"{name}: {error.what}"
    except Exception as error:  # Spark raises py4j and Java errors of many kinds for a query that does not run
        return f"{name}: its recorded statement failed: {type(error).__name__}"
    if not found.standing and not found.given:
        return None
    return (
        f"{name} contains {counted(found.standing, 'row')} that its recorded statement does not return from the "
        f"present sources, and lacks {found.given} that the statement returns"
    )


def compared(ctx: ExecutionContext, step: Step) -> Difference:
    """How the table of a rebuild differs now from what its recorded query gives now, as multisets of rows.

    Raises:
        RunError: the query's columns are not the table's, a folder cannot be swapped whole, or the session cannot.
    """
    support = support_for(step.action)
    if support is None:
        raise RunError(
            "a table of this format cannot be compared with its recorded statement",
            todo="rebuild the table by its job, and leave the table out of the plan (`--only`)",
        )
    have, made = support.rebuild_sides(ctx, step)
    standing, given = unlike(made, have)
    rows = Difference(rows_in(standing), rows_in(given))
    if not rows.standing or not rows.given:
        return rows
    alike = _alike(standing, given)
    return Difference(rows.standing - alike, rows.given - alike)


def _alike(standing: DataFrame, given: DataFrame) -> int:
    """How many rows differ in the last digits of floating-point numbers only."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    kinds = dict(standing.dtypes)
    floats = [name for name, kind in kinds.items() if kind in _SAME]
    if not floats:
        return 0
    exact = [name for name in kinds if name not in floats]
    number = f.row_number().over(Window.partitionBy(*map(quote, exact)).orderBy(*map(quote, floats)))
    one, other = standing.withColumn("__nth", number).alias("a"), given.withColumn("__nth", number).alias("b")

    def equal(name: str) -> Column:
        a, b = f.col(f"a.{quote(name)}"), f.col(f"b.{quote(name)}")
        if name not in floats:
            return a.eqNullSafe(b)
        return a.eqNullSafe(b) | (f.abs(a - b) <= _SAME[kinds[name]] * f.greatest(f.abs(a), f.abs(b)))

    return rows_in(one.join(other, reduce(lambda x, y: x & y, map(equal, [*exact, "__nth", *floats]))))
