"""Which keys belong to erased persons and must not be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from pii_tracer.app.settings import Settings
from pii_tracer.model.errors import UsageError
from pii_tracer.run.suppression_list import FILE, SuppressionList


def suppressed(settings: Settings, file: TextIO, subject: str, column: str | None = None) -> Iterator[bool]:
    """Whether each value of a file, one a line, belongs to an erased person.

    subject: the kind of person, as the estate file declares it. column: which the values are of; the subject's key,
    without one.

    Raises:
        UsageError: an unknown subject, a column of which nothing is known, or a file that is not UTF-8.
    """
    declared = {s.name: s for s in settings.estate().subjects}
    if subject not in declared:
        raise UsageError(
            f"the estate declares no subject `{subject}`", todo=f"use one of: {', '.join(sorted(declared))}"
        )
    if declared[subject].several_columns and column is None:
        raise UsageError(
            f"the key of `{subject}` has several columns ({declared[subject].key}), but each line holds only one value",
            todo="name an identifier with `--column`, or check whole rows in a Spark job (`without_suppressed`)",
        )
    known = SuppressionList(settings.state / FILE, settings.key())
    key_set = f"{subject}.{column or declared[subject].key}"
    if known.entries and key_set not in known.key_sets:
        raise UsageError(
            f"the suppression list has no values of `{key_set}`, so no value could be recognised",
            todo=f"use a column of: {', '.join(sorted(known.key_sets))}",
        )
    for value in _values(file):
        yield known.find(key_set, value) is not None


def _values(file: TextIO) -> Iterator[str]:
    """The lines of the file. Raises `UsageError` where it has another encoding: nothing in it would be known."""
    try:
        for line in file:
            if "\0" in line:  # letters of UTF-16 and UTF-32 are letters and zeros in UTF-8
                raise _not_utf8(file)
            yield line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise _not_utf8(file) from None


def _not_utf8(file: TextIO) -> UsageError:
    return UsageError(
        "the file with the values is not UTF-8, so no value would match",
        where=str(getattr(file, "name", "-")),
        todo="save it as UTF-8 (with `iconv -f UTF-16 -t UTF-8`, for example) and ask again",
    )
