"""Reads a plan file strictly and keeps its exact bytes: approvals are bound to them and to nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pii_tracer.common.atomic_files import read_bounded
from pii_tracer.model.errors import ReviewError
from pii_tracer.model.plan import FORMAT_VERSION, ErasurePlan, digest_of
from pii_tracer.review.dsse import strict_json
from pii_tracer.review.plan_consistency import contradiction

MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class LoadedPlan:
    """A plan with the bytes it was read from. name: file name, as approvals name their subject."""

    plan: ErasurePlan
    raw: bytes
    digest: str
    name: str


def load_plan(path: Path, *, max_bytes: int = MAX_BYTES) -> LoadedPlan:
    """Read a plan file.

    Raises:
        ReviewError: missing, too large, not strict JSON, unknown format version or fields, or what no planner writes.
    """
    try:
        raw = read_bounded(path, max_bytes)
    except OSError as error:
        raise ReviewError(
            f"the plan file cannot be read: {error.strerror or type(error).__name__}",
            where=str(path),
            todo="make a plan file with `pii-tracer plan`",
        ) from None
    return parse_plan(raw, path.name, str(path))


def parse_plan(raw: bytes, name: str, where: str | None = None) -> LoadedPlan:
    """A plan from its bytes. Raises `ReviewError` as `load_plan` does."""
    where = where or name
    try:
        data = strict_json(raw)
    except (ValueError, RecursionError) as error:
        what = str(error) if type(error) is ValueError else "it is not JSON in UTF-8"
        raise ReviewError(f"this is not a plan file: {what}", where=where, todo="plan again") from None
    version = data.get("format_version") if isinstance(data, dict) else None
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise ReviewError(
            f"plan format version {version!r:.20} is not known, only {FORMAT_VERSION}",
            where=where,
            todo="use the pii-tracer version that made the plan, or plan again",
        )
    try:
        plan = ErasurePlan.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ReviewError(
            f"the plan file is wrong at {place}: {first['msg']}", where=where, todo="plan again"
        ) from None
    wrong = contradiction(plan)
    if wrong:
        raise ReviewError(f"the plan file was not made by a planner: {wrong}", where=where, todo="plan again")
    return LoadedPlan(plan, raw, digest_of(raw), name)
