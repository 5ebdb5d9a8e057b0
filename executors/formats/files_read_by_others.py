"""Files that a table of another format still reads, which must not be removed or written again under it."""

from __future__ import annotations

from executors.context import ExecutionContext
from executors.formats.base import Sharers, SparkSupport
from executors.formats.registry import spark_supports
from pii_tracer.model.errors import RunError


def read_by(ctx: ExecutionContext, sharing: Sharers) -> set[str]:
    """Every file that other tables read now.

    Where the step does not say what format one has, every format is asked whose tables can share files.

    Raises:
        RunError: one of them cannot be asked; nothing may be removed then.
    """
    found: set[str] = set()
    for other in sharing:
        answers = [
            support.files_read(ctx, (other,)) for support in spark_supports() if _may_be(other.get("format"), support)
        ]
        told = [files for files in answers if files is not None]
        if not told:
            raise RunError(
                "the files of a table that shares files with this table cannot be listed",
                where=str(other.get("table") or other.get("location")),
                todo="install the package for the format of that table, or leave this table out of the plan (`--only`)",
            )
        found.update(*told)
    return found


def _may_be(kind: str | None, support: SparkSupport) -> bool:
    return kind is None or kind in {one.value for one in support.formats}
