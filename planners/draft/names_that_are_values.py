"""Names of columns and fields that are values of persons: JSON whose objects are called by mails or by numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planners.draft.column_guesses import category_of, key_strength, may_tell_of_person
from planners.draft.subject_guesses import SampledTable


def without_telling_names(tables: Sequence[SampledTable]) -> tuple[list[SampledTable], int]:
    """The tables without columns and fields whose names may be somebody's values, and how many those are: nothing that
    a draft writes has them.

    A name is one if a part of it looks like a mail, a phone, a UUID or a long number, or is a sampled value of a column
    that identifies.
    """
    known = {
        str(value).strip().casefold()
        for table in tables
        for column in table.columns
        if category_of(column.name, column.type) or key_strength(column.name, column.type)
        for value in table.values(column.name)
        if value is not None
    }

    def tells(name: str) -> bool:
        parts = (name, *name.split("."))
        return any(part.strip().casefold() in known or may_tell_of_person(part) for part in parts)

    kept, apart = [], 0
    for table in tables:
        telling = {name for name in {*(column.name for column in table.columns), *table.listed} if tells(name)}
        apart += len(telling)
        kept.append(
            replace(
                table,
                columns=tuple(column for column in table.columns if column.name not in telling),
                sample={name: values for name, values in table.sample.items() if name not in telling},
                listed={name: values for name, values in table.listed.items() if name not in telling},
            )
            if telling
            else table
        )
    return kept, apart
