"""Where a name of the estate file stands in a table: a column, or a field inside the structs of one.

`contact.email` is the field `email` of the struct `contact`. A column or field whose own name holds the dot goes before
a way that is split there, so that `contact.email` means the column of exactly that name where the table has one. As in
Spark's DDL, `members.element` are the elements of a list, and `scores.key` the keys of a map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.model.datasets import (
    Column,
    ColumnId,
    DatasetId,
    ElementAccess,
    FieldAccess,
)
from pii_tracer.model.errors import ConfigError

_COLLECTION = re.compile(r"\s*(array|map)\b", re.IGNORECASE)
_LIST = re.compile(r"\s*array\s*<(?P<element>.*)>\s*", re.IGNORECASE | re.DOTALL)
_MAP = re.compile(r"\s*map\s*<(?P<both>.*)>\s*", re.IGNORECASE | re.DOTALL)
_STRUCT = re.compile(r"\s*struct\s*<(?P<fields>.*)>\s*", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)*)`|(?P<plain>[^:]*?))\s*:\s*(?P<type>.+?)\s*", re.DOTALL)

Fields = tuple[tuple[str, str], ...]
"""Names and types, as Spark SQL's DDL writes these."""

Steps = tuple[FieldAccess | ElementAccess, ...]
"""A way into a column: fields of its structs, the elements of its lists, the keys of its maps."""


@dataclass(frozen=True)
class Spot:
    """A column, and the way into it. type: of what stands there, as Spark SQL's DDL writes it."""

    column: str
    access: Steps = ()
    type: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The column's name, and those of the steps on the way."""
        return (self.column, *(step.name for step in self.access))

    @property
    def shared(self) -> bool:
        """Whether several stand there in one row: in a list, or as the keys of a map."""
        return any(isinstance(step, ElementAccess) for step in self.access)

    @property
    def sql(self) -> str:
        """The spot as Spark SQL."""
        return ".".join("`" + name.replace("`", "``") + "`" for name in self.names)


Spots = Mapping[ColumnId, Spot]
"""By dataset and name in the estate file; what is not in it is a column of that name."""


def spot_of(spots: Spots, dataset: DatasetId, name: str) -> Spot:
    """Where a name stands in a dataset."""
    return spots.get(ColumnId(dataset=dataset, column=name)) or Spot(name)


def find_spot(name: str, columns: Sequence[Column], table: str) -> Spot:
    """Where a name of a subject stands among a table's columns.

    Raises:
        ConfigError: nowhere, on a struct, a list or a map as a whole, or in the values of a map.
    """
    fields = tuple((c.name, c.type) for c in columns)
    found = next(_ways(name, fields), None)
    if found is None:
        raise ConfigError(
            f"{table} has no column {name}{_why(name, fields) or _unnamed(fields)}",
            where="the estate file, `subjects`",
            todo="correct key, identifiers or record_keys",
        )
    (column, access), kind = found
    if _COLLECTION.match(kind) or struct_fields(kind) is not None:
        raise ConfigError(
            f"{name} of {table} is {_said(kind)}: no value of it could identify a person",
            where="the estate file, `subjects`",
            todo="name a field of a struct as `column.field`, the elements of a list as `column.element`, their fields"
            " as `column.element.field`, and the keys of a map as `column.key`",
        )
    return Spot(column, access, kind)


def struct_fields(kind: str) -> Fields | None:
    """The fields of a struct's type; None for any other type."""
    match = _STRUCT.fullmatch(kind)
    if match is None:
        return None
    parts = (_FIELD.fullmatch(part) for part in _split(match["fields"]))
    return tuple((p["plain"] if p["quoted"] is None else p["quoted"].replace("``", "`"), p["type"]) for p in parts if p)


def elements_of(kind: str) -> str | None:
    """The type of the elements of a list's type; None for any other type."""
    match = _LIST.fullmatch(kind)
    return match["element"].strip() if match else None


def keys_of(kind: str) -> str | None:
    """The type of the keys of a map's type; None for any other type."""
    both = key_and_value(kind)
    return both[0] if both else None


def key_and_value(kind: str) -> tuple[str, str] | None:
    """The types of the keys and of the values of a map's type; None for any other type."""
    match = _MAP.fullmatch(kind)
    if match is None:
        return None
    key, value = _split(match["both"])
    return key.strip(), value.strip()


def leaves(name: str, kind: str) -> Iterator[tuple[str, ...]]:
    """The ways to everything in a column that is no struct itself, by names."""
    fields = struct_fields(kind)
    if fields is None:
        yield (name,)
    for field, inner in fields or ():
        yield from ((name, *way) for way in leaves(field, inner))


def names_in_lists(columns: Sequence[Column]) -> dict[str, str]:
    """What is in lists and maps of some columns: by what a search of files calls it, its name in the estate file. The
    values of maps have none.
    """
    found = (place for column in columns for place in _listed(column.name, column.name, column.type, inside=False))
    return dict(found)


def _listed(place: str, name: str, kind: str, *, inside: bool) -> Iterator[tuple[str, str]]:
    """inside: a list or a map was passed on the way."""
    if (element := elements_of(kind)) is not None:
        yield from _listed(place, f"{name}.element", element, inside=True)
    elif (key := keys_of(kind)) is not None:
        yield from _listed(f"{place}.key", f"{name}.key", key, inside=True)
    elif (fields := struct_fields(kind)) is not None:
        for field, inner in fields:
            yield from _listed(f"{place}.{field}", f"{name}.{field}", inner, inside=inside)
    elif inside:
        yield place, name


def _split(text: str) -> Iterator[str]:
    """A list of fields at its own commas: not at those inside types, and not inside quoted names."""
    depth, begin, quoted = 0, 0, False
    for position, sign in enumerate(text):
        if sign == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif sign in "<(":
            depth += 1
        elif sign in ">)":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[begin:position]
            begin = position + 1
    yield text[begin:]


def _ways(name: str, fields: Fields) -> Iterator[tuple[tuple[str, Steps], str]]:
    """The ways that a name can be read, the one with the longest first step first."""
    for known, kind in sorted(fields, key=lambda f: -len(f[0])):
        if name == known:
            yield (known, ()), kind
        elif name.startswith(f"{known}."):
            for steps, leaf in _into(name[len(known) + 1 :], kind):
                yield (known, steps), leaf


def _into(name: str, kind: str) -> Iterator[tuple[Steps, str]]:
    """The ways that a name leads on into a type."""
    for (field, steps), leaf in _ways(name, struct_fields(kind) or ()):
        yield (FieldAccess(name=field), *steps), leaf
    inner: tuple[tuple[ElementAccess, str | None], ...] = (
        (ElementAccess(name="element"), elements_of(kind)),
        (ElementAccess(name="key"), keys_of(kind)),
    )
    for step, held in inner:
        if held is not None and name == step.name:
            yield (step,), held
        elif held is not None and name.startswith(f"{step.name}."):
            yield from (((step, *steps), leaf) for steps, leaf in _into(name[len(step.name) + 1 :], held))


def _why(name: str, fields: Fields) -> str:
    """Where the way into a column ends; empty where not even the column is there."""
    for known, kind in sorted(fields, key=lambda f: -len(f[0])):
        if name.startswith(f"{known}."):
            rest, inner = name[len(known) + 1 :], struct_fields(kind)
            if inner is None:
                return f": `{known}` is {_said(kind)}{_named_so(kind)}"
            return _why(rest, inner) or f": the struct `{known}` has no field {rest}"
    return ""


def _named_so(kind: str) -> str:
    """How the estate file names what is in a list or a map."""
    if elements_of(kind) is not None:
        return ", whose elements are named `element`"
    return ", whose keys are named `key`, and whose values cannot be named" if keys_of(kind) is not None else ""


def _unnamed(fields: Fields) -> str:
    """Why no column has a name; empty where one has."""
    if not fields or any(known != f"_c{number}" for number, (known, _) in enumerate(fields)):
        return ""
    return ": its files name no columns, as their first line has a name twice or is no header"


def _said(kind: str) -> str:
    word = kind.strip().split("<", 1)[0].lower()
    return {"struct": "a struct", "array": "a list", "map": "a map"}.get(word, f"of type {kind}")
