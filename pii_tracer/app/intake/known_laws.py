"""The laws that requests can name, as they stand on a day."""

from __future__ import annotations

from datetime import datetime

from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import Law, Rules, laws_of
from pii_tracer.model.errors import UsageError


def known_laws(settings: Settings, at: datetime, name: str | None = None) -> list[tuple[Law, Rules]]:
    """Each law with its rules for a request of that time, by name. The estate's own laws, too, where there is a file.

    Raises:
        UsageError: there is no law of this name.
        ConfigError: the estate file cannot be read.
    """
    own = settings.estate().laws if settings.estate_file.exists() else ()
    laws = laws_of(own)
    if name is not None and name not in laws:
        raise UsageError(f"there is no law `{name}`", todo=f"name one of {', '.join(sorted(laws))}")
    return [(law, law.at(at)) for _, law in sorted(laws.items()) if name in (None, law.name)]
