"""Where things are: the estate file and the state folder, and the time that somebody names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pii_tracer.common.atomic_files import real_path
from pii_tracer.config.estate_file import Estate, Policy, load_estate, load_policy
from pii_tracer.model.errors import UsageError
from pii_tracer.review.sealed_person_values import EstateKey, load_estate_key

DEFAULT_ESTATE = Path("pii-tracer.yaml")
DEFAULT_STATE = Path(".pii-tracer")


@dataclass(frozen=True)
class Settings:
    """The estate file, and the folder where keys, plans, runs and logs are kept."""

    estate_file: Path
    state: Path

    @property
    def base(self) -> Path:
        """Folder of the estate file; its relative paths start here."""
        return real_path(self.estate_file).parent

    def estate(self) -> Estate:
        """Read the estate file. Under `spark-submit`, the master is that which it was given."""
        from executors.engine.spark_submit import as_submitted

        return as_submitted(load_estate(self.estate_file))

    def policy(self, path: Path | None = None) -> tuple[Policy, Path]:
        """Read the policy: the named file, or `policy.yaml` beside the estate file."""
        path = path or self.base / "policy.yaml"
        return load_policy(path), path

    def options(self, policy: Path | None = None) -> tuple[str, ...]:
        """These settings as later commands need them on the command line; defaults are left out."""
        given = (("--estate", self.estate_file, DEFAULT_ESTATE), ("--state", self.state, DEFAULT_STATE))
        found = [part for flag, path, usual in given if path != usual for part in (flag, str(path))]
        return (*found, "--policy", str(policy)) if policy else tuple(found)

    def key_file(self) -> Path:
        """Where the estate key is."""
        return Path(os.environ.get("PII_TRACER_ESTATE_KEY") or self.state / "keys" / "estate.key")

    def key(self, *, create: bool = False) -> EstateKey:
        """Read the estate key (see `pii_tracer.review.sealed_person_values`)."""
        return load_estate_key(self.key_file(), create=create)


def moment(text: str | None) -> datetime:
    """A time given on the command line (ISO 8601 with a time zone), or now.

    Raises:
        UsageError: not a time, or without a time zone.
    """
    if text is None:
        return datetime.now(timezone.utc).replace(microsecond=0)
    try:
        value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"`{text}` is not a time", todo="write it as 2026-11-21T10:00:00+05:30") from None
    if value.tzinfo is None:
        raise UsageError(f"`{text}` has no time zone", todo="add one, e.g. +05:30 or Z")
    if not 1970 <= value.year <= 9000:  # time is added to it, and other time zones are asked
        raise UsageError(f"`{text}` is not a time that can be planned for", todo="write one between 1970 and 9000")
    return value
