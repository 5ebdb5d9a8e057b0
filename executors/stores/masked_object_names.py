"""Names of objects of a table, as journals and logs may have them: keys of partition folders can be persons' values."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from executors.stores.s3.step_base import S3Context
from executors.value_search_protocol import Finder
from pii_tracer.model.datasets import MatchTerm
from pii_tracer.model.plan import Copy
from pii_tracer.run.masked_place_names import without_partition_values

Shown = Callable[[str], str]


def shown_names(ctx: S3Context, copy: Copy | None) -> Shown:
    """How keys of a copy are told. As they are, but for values of persons, and for partitions by a column that rows of
    persons are found by: these are other people's values. Where nobody knows those columns, for all partitions.
    """
    finder = _finder(ctx, copy)
    columns = {name.lower() for term in _terms(copy) for name in term.columns}

    def shown(key: str) -> str:
        plain = unquote(key)  # Spark writes some characters of a value with a %, delta-rs more of them
        if finder is None or not columns or finder.mask(plain) != plain:
            return without_partition_values(finder.mask(key) if finder else key)
        named = {part.partition("=")[0].lower() for part in key.split("/") if "=" in part}
        return without_partition_values(key) if columns & named else key

    return shown


def _terms(copy: Copy | None) -> tuple[MatchTerm, ...]:
    return copy.places.terms if copy and copy.places else ()


def _finder(ctx: S3Context, copy: Copy | None) -> Finder | None:
    sets = {term.key_set: ctx.keyring.key_set(term.key_set) for term in _terms(copy)}
    sets |= {found.name: found for found in ctx.everything}
    return ctx.finds(sets.values()) if any(found.values for found in sets.values()) else None
