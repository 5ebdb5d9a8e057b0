"""The kinds of object stores that are installed, by the scheme of what lies in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from pii_tracer.common import plugins
from pii_tracer.lake.stores.base import ObjectStore
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from pii_tracer.config.estate_file import Estate

GROUP = "pii_tracer.stores"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_ALIASES = {"s3a": "s3", "s3n": "s3"}
"""Schemes that engines write for a store of another name."""


def store_at(estate: Estate, place: str, region: str | None = None) -> tuple[ObjectStore, str]:
    """The store in which a place (`s3://bucket/prefix`, `hdfs://host/folder`) lies; see `ObjectStore.at`.

    Raises:
        EstateError: no installed package knows the scheme, or the place is no place of such a store.
    """
    found = _SCHEME.match(place)
    scheme = found[1].lower() if found else ""
    lacks = f"knows stores of `{scheme or 'no scheme'}`"
    kind = plugins.required(GROUP, _ALIASES.get(scheme, scheme), lacks, EstateError)
    return cast(type[ObjectStore], kind).at(estate, place, region)
