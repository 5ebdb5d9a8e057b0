"""How long a Hudi table's stored settings keep old data, in days. Pure: properties in, settings out.

https://hudi.apache.org/docs/cleaning
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pii_tracer.lake.formats.retention_terms import Kept

_POLICY = ("hoodie.clean.policy", "hoodie.cleaner.policy")
_HOURS = ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained")
_BY_HOURS = "KEEP_LATEST_BY_HOURS"


def kept_by(properties: Mapping[str, str]) -> Iterator[Kept]:
    """Hudi's cleaner is set up by each writer; only what is stored in `hoodie.properties` can be held against it."""
    policy = _first(properties, _POLICY)
    if policy is None:
        yield Kept(_POLICY[0], None, None, "not stored with the table: each writer has its own setting", stored=False)
    elif policy[1].upper() == _BY_HOURS:
        hours = _first(properties, _HOURS)
        if hours is None:
            yield Kept(_HOURS[0], None, 1.0)
        elif hours[1].isascii() and hours[1].isdigit():
            yield Kept(hours[0], hours[1], int(hours[1]) / 24, history=True)
        else:
            yield Kept(hours[0], hours[1], None, "the number cannot be read")
    else:
        yield Kept(policy[0], policy[1], None, "keeps by number of commits or versions, whatever their age")


def _first(properties: Mapping[str, str], names: Sequence[str]) -> tuple[str, str] | None:
    return next(((name, properties[name]) for name in names if name in properties), None)
