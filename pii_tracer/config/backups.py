"""The estate file's `backups`: copies that only their owners reach (docs/backups.md)."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from pii_tracer.model.datasets import Frozen, Said


class Backup(Frozen):
    """A database dump, a vault of recovery points, a snapshot elsewhere.

    of: the datasets in it, as Spark SQL names them, or their folders. owner: who must act. location: where it lies, for
    the owner to find it. due_days: how long the owner has, after everything in it was erased. act: what is to be done.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    of: tuple[str, ...] = Field(min_length=1)
    owner: Said
    location: str = Field(min_length=1)
    due_days: int = Field(ge=0)
    act: Said = "delete every backup that was made before the erasure"


def wrong_backups(backups: Iterable[Backup]) -> str | None:
    """What is wrong between backups, or None."""
    backups = list(backups)
    if len({b.name for b in backups}) != len(backups):
        return "two backups have one name"
    if len({b.location for b in backups}) != len(backups):
        return "two backups have one location: declare one with all its datasets"
    return None
