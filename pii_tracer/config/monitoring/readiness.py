"""The estate file's `readiness`: owners of tables, laws that count, and canary persons (docs/readiness.md)."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from pydantic import Field

from pii_tracer.model.datasets import Frozen

NO_OWNER = "(no owner)"
"""The owner of a table that no rule names."""


class Canary(Frozen):
    """An invented person whom somebody put into a subject's source, to be followed through the real jobs.

    key: a reference to the key, never the key: `env:NAME` of an environment variable, or `sealed:HEX` as
    `readiness --seal-canary` prints it. absent_from: tables whose jobs leave the row out on purpose.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    subject: str
    key: str = Field(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]{0,127}|sealed:([0-9a-f]{2}){17,})$")
    absent_from: tuple[str, ...] = ()


class ReadinessSettings(Frozen):
    """owners: who answers for a table, by its name or a pattern of names (`lake.sales.*`); the first that fits counts.

    laws: whose deadlines count; every known law where none is named.
    """

    owners: dict[str, str] = {}
    laws: tuple[str, ...] = ()
    canaries: tuple[Canary, ...] = ()

    def owner_of(self, *names: str | None) -> str:
        """Who answers for a table, by any of its names."""
        known = [name.lower() for name in names if name]
        for pattern, owner in self.owners.items():
            if any(fnmatchcase(name, pattern.lower()) for name in known):
                return owner
        return NO_OWNER


def wrong_readiness(settings: ReadinessSettings, subjects: Collection[str], laws: Collection[str]) -> str | None:
    """What contradicts the rest of the estate file, or None."""
    names = [canary.name for canary in settings.canaries]
    if len(set(names)) != len(names):
        return "two canaries have one name"
    strange = sorted({canary.subject for canary in settings.canaries} - set(subjects))
    if strange:
        return f"the canaries are of the subject `{strange[0]}`, which the estate file does not declare"
    unknown = sorted(set(settings.laws) - set(laws))
    return f"`readiness.laws` names the unknown law {unknown[0]}" if unknown else None
