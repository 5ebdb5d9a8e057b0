"""Rows that stay without the persons, as Spark SQL: which still hold more than what is kept, and what becomes of them.

A hold keeps some of their columns, or they are somebody else's, too: columns become NULL, and lists and maps lose the
persons' elements.
"""

from __future__ import annotations

from executors.context import ExecutionContext
from executors.engine.match_sql import condition, count, match_of, merge, without
from executors.engine.sql_names import quote
from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Mask, Step


def mentioning(copy: Copy | None) -> list[Copy]:
    """A copy as it is treated for each column that names the persons in rows of others."""
    return [copy.model_copy(update={"match": m.match, "mask": m.mask}) for m in copy.mentions] if copy else []


def treated(step: Step, copy: Copy | None) -> Copy | None:
    """The copy as a step treats it: for the column that the step names among those that name persons in rows of others.

    Raises:
        RunError: the plan has no such column.
    """
    if "mention" not in step.parameters:
        return copy
    parts, number = mentioning(copy), int(step.parameters["mention"])
    if number not in range(len(parts)):
        raise RunError("the plan does not name the columns to clear in this copy", todo="make the plan again")
    return parts[number]


def mask_of(copy: Copy | None) -> Mask:
    """What becomes NULL in a copy; nothing where only lists or maps lose elements.

    Raises:
        RunError: the plan does not say it.
    """
    if copy is None or copy.mask is None or not (copy.mask.columns or in_lists(copy)):
        raise RunError("the plan does not name the columns to set to NULL in this copy", todo="make the plan again")
    return copy.mask


def in_lists(copy: Copy | None) -> tuple[MatchTerm, ...]:
    """The terms of a copy that look into lists or maps: these lose the elements in which they find the persons."""
    return tuple(term for term in match_of(copy).terms if term.within is not None)


def unmasked(copy: Copy | None, alias: str | None = None) -> str:
    """A condition on a row of the persons: anything of it that nothing keeps has a value."""
    mask = mask_of(copy)
    if in_lists(copy):  # it is found by an element that nothing keeps
        return "true"
    prefix = f"{alias}." if alias else ""
    return "(" + " OR ".join(f"{prefix}{quote(name)} IS NOT NULL" for name in mask.columns) + ")"


def assignments(copy: Copy | None) -> str:
    """What UPDATE sets; of elements as a part of `match_sql.merge`."""
    sets = [f"{quote(name)} = NULL" for name in mask_of(copy).columns]
    for number, term in enumerate(match_of(copy).terms):
        if term.within is not None:
            sets.append(f"{quote(term.column)} = {without(term, 't', f's.e{number}')}")
    return ", ".join(sets)


def masking_merge(ctx: ExecutionContext, relation: str, copy: Copy | None) -> str:
    """The statement by which the persons' rows of a relation keep no more than what is kept."""
    then = f"WHEN MATCHED AND {unmasked(copy, 't')} THEN UPDATE SET {assignments(copy)}"
    return merge(ctx, relation, match_of(copy), then)


def masking_update(ctx: ExecutionContext, relation: str, copy: Copy | None) -> str:
    """As `masking_merge`, where UPDATE takes subqueries; none stands among what a list keeps, which MERGE computes."""
    if in_lists(copy):
        return masking_merge(ctx, relation, copy)
    return f"UPDATE {relation} SET {assignments(copy)} WHERE {to_mask(ctx, copy)}"


def to_mask(ctx: ExecutionContext, copy: Copy | None) -> str:
    """A condition that is true for the persons' rows that still hold more than what is kept."""
    return f"({condition(ctx, match_of(copy))}) AND {unmasked(copy)}"


def count_unmasked(ctx: ExecutionContext, relation: str, copy: Copy | None) -> int:
    """Number of the persons' rows in a relation (a quoted name) that still hold more than what is kept."""
    row = ctx.spark.sql(f"SELECT count(*) FROM {relation} WHERE {to_mask(ctx, copy)}").first()
    return int(row[0]) if row else 0


def more_than_held(ctx: ExecutionContext, relation: str, copy: Copy | None, where: str = "") -> list[str]:
    """The persons' rows that still hold more than what is kept, as a finding."""
    left = count_unmasked(ctx, relation, copy)
    return (
        [
            f"{counted(left, 'row of the person still has', 'rows of the person still have')} values in columns that "
            f"are not kept{where}"
        ]
        if left
        else []
    )


def refuse_rows_without_owner(ctx: ExecutionContext, relation: str, copy: Copy | None) -> None:
    """Rows that only a column finds which becomes NULL would be nobody's afterwards. Where nothing is held, they are
    somebody else's, and nobody looks for them.

    Raises:
        RunError: there are some; nothing was changed.
    """
    if not mask_of(copy).held:
        return
    match, kept = match_of(copy), {name.lower() for name in mask_of(copy).kept}
    stays = Match(terms=tuple(term for term in match.terms if term.column.lower() in kept))
    lost = count(ctx, relation, match) - (count(ctx, relation, stays) if stays.terms else 0)
    if lost:
        raise nobodys(lost, match, stays, relation)


def nobodys(rows: int, match: Match, stays: Match, where: str) -> RunError:
    """Why rows are refused that none of the terms finds that stay."""
    names = sorted({term.label() for term in match.terms if term not in stays.terms})
    return RunError(
        f"{counted(rows, 'row is', 'rows are')} found only by {', '.join(names)}, which would become NULL: nobody "
        "would then know whose the held values are",
        where=where,
        todo="add that column to the hold, then plan again",
    )
