"""A plan's files: the plan, its sealed manifest and its readable forms beside it, and the waivers it is made with."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from pii_tracer.app.settings import Settings
from pii_tracer.config.strict_yaml import load_yaml
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ConfigError, UsageError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Gap
from pii_tracer.model.waivers import Waiver
from pii_tracer.review.sealed_person_values import KeyRing


def read_waivers(path: Path) -> dict[str, Waiver]:
    """Waivers by gap id.

    Raises:
        ConfigError: missing, not YAML, or a waiver without who, why or until that can be read.
    """
    try:
        data = load_yaml(path, "waivers")
        read = {str(gap): Waiver.model_validate(item) for gap, item in dict(data).items()}
    except (TypeError, ValueError, ValidationError) as error:
        told = type(error).__name__
        if isinstance(error, ValidationError):  # names of fields alone: what stands in them may be anything
            told = _to_correct(str(first["loc"][0]) for first in error.errors() if first["loc"])
        raise _unreadable(path, told) from None
    if unsaid := [name for waiver in read.values() for name in waiver.unsaid]:
        raise _unreadable(path, _to_correct(unsaid))
    return read


def _unreadable(path: Path, told: str) -> ConfigError:
    return ConfigError(
        f"the waivers file cannot be read: {told}",
        where=str(path),
        todo="write it as `gap-id: {who: …, why: …, until: 2026-12-31T00:00:00Z, of: …}`",
    )


def _to_correct(names: Iterable[str]) -> str:
    known = {f"`{name}`" if name in Waiver.model_fields else "an unknown key" for name in names}
    return f"fill in or correct {', '.join(sorted(known))}"


def refuse_existing(path: Path | None) -> None:
    """Raise `UsageError` where a draft of waivers would overwrite a file: somebody's reasons may stand in it. And where
    nothing can be written, so that no plan is made in vain."""
    if path is not None and (path.exists() or path.is_symlink()):
        raise UsageError("the file is there already", where=str(path), todo="name a new file for `--write-waivers`")
    if path is None:
        return
    folder = next(one for one in path.absolute().parents if one.exists())  # what is missing is made
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        where, todo = str(folder), "name a file in another folder for `--write-waivers`"
        raise UsageError("no waivers can be written in that folder", where=where, todo=todo)


def draft_waivers(made: ErasurePlan, unwaivable: Container[str], path: Path) -> int:
    """Write an entry for each open gap that may be waived, without name and reason: nobody reads it before these are
    there. unwaivable: kinds of the policy. Returns how many entries were written."""
    import yaml

    from pii_tracer.common.atomic_files import write_atomic
    from reports.escape import visible

    lines = [
        f"# Open gaps of {made.plan_id}. Keep the entries that a named person accepts, and delete the others.",
        "# Fill in `who`, `why` and `until`: the file is refused while one of them is empty.",
    ]
    gaps = [gap for gap in made.gaps if gap.waiver is None and gap.kind != GapKind.LEFT_OUT]
    gaps = [gap for gap in gaps if str(gap.kind) not in unwaivable]
    for gap in gaps:
        entry = {gap.id: {"who": "", "why": "", "until": "", "of": gap.seen}}
        told = [visible(text) for text in (gap.reason, gap.evidence) if text]
        lines += ["", *(f"# {text}" for text in told), yaml.safe_dump(entry, sort_keys=False, width=10_000).rstrip()]
    write_atomic(path, ("\n".join(lines) + "\n").encode())
    return len(gaps)


def without_effect(waivers: Mapping[str, Waiver], made: ErasurePlan) -> list[str]:
    """What the waivers file holds in vain, for whoever wrote it: a line each. Ids as the file has them, quoted."""
    gaps = {gap.id: gap for gap in made.gaps}
    idle = {name: waiver for name, waiver in sorted(waivers.items()) if name not in gaps or gaps[name].waiver is None}
    return [f"waiver without effect: {_why(name, waiver, gaps.get(name))}" for name, waiver in idle.items()]


def _why(name: str, waiver: Waiver, gap: Gap | None) -> str:
    if gap is None:
        return f"no gap of this plan has the id {name!r}"
    if waiver.of == gap.seen:
        return f"the waiver of {name!r} ran out on {waiver.until:%Y-%m-%d}"
    if not waiver.of:
        return f"the waiver of {name!r} does not say what was seen: write `of: {gap.seen}` if this is what you accept"
    return f"{name!r} shows something else since it was waived: look again, and write `of: {gap.seen}` if you accept it"


def write_plan(made: ErasurePlan, sealed: bytes, path: Path, options: Sequence[str]) -> None:
    """The plan file, with its sealed manifest, Markdown and HTML beside it; each whole or not at all."""
    from pii_tracer.common.atomic_files import write_atomic
    from reports.plan.plan_html import render_plan_html
    from reports.plan.plan_markdown import render_plan_markdown

    write_atomic(manifest_path(path), sealed, mode=0o600)
    write_atomic(sibling(path, ".md"), render_plan_markdown(made, plan_file=str(path), options=options).encode())
    write_atomic(sibling(path, ".html"), render_plan_html(made, plan_file=str(path), options=options).encode())
    write_atomic(path, made.to_bytes())


_OWN = {".plan.json": b'"plan_id"', ".md": b" for estate ", ".html": b'class="eyebrow">Erasure plan'}
"""What stands in every file that `write_plan` made, by its ending."""


def refuse_foreign_files(path: Path) -> None:
    """Raise `UsageError` where the name is none of a plan, or a file that no plan wrote would be overwritten."""
    if not path.name.endswith(".plan.json"):
        raise UsageError(
            "the name of a plan file must end in .plan.json", where=str(path), todo="change the name in `--out`"
        )
    for ending, mark in _OWN.items():
        place = sibling(path, ending)
        if place.exists() and not (place.is_file() and mark in place.read_bytes()):
            raise UsageError(
                f"`--out` would overwrite {place.name}, which is not a plan",
                where=str(place),
                todo="choose another name",
            )


def sibling(path: Path, ending: str) -> Path:
    """A file beside the plan, with the plan's name and another ending."""
    return path.with_name(path.name.removesuffix(".plan.json") + ending)


def manifest_path(path: Path) -> Path:
    """The sealed manifest beside a plan."""
    return sibling(path, ".subjects.sealed")


def key_sets_at_hand(settings: Settings, made: ErasurePlan, plan_file: Path) -> tuple[KeySet, ...]:
    """What is sealed beside a plan; nothing without the estate key and the manifest.

    Raises:
        PlanError: the manifest does not open, or is another plan's.
    """
    manifest = manifest_path(plan_file)
    if not (manifest.exists() and settings.key_file().exists()):
        return ()
    return KeyRing.open(manifest, made.subjects_digest, settings.key()).key_sets
