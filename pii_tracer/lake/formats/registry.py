"""The table formats that are installed, by name."""

from __future__ import annotations

from functools import cache
from typing import cast

from pii_tracer.common import plugins
from pii_tracer.lake.formats.base import Role, TableFormat
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import EstateError

GROUP = "pii_tracer.formats"


def format_names() -> tuple[str, ...]:
    """What the installed formats are called, sorted. None is imported."""
    return plugins.names(GROUP)


@cache
def table_formats() -> tuple[TableFormat, ...]:
    """Every installed format, sorted by name."""
    return tuple(format_of(Format(name)) for name in plugins.names(GROUP))


@cache
def format_of(name: Format) -> TableFormat:
    """The adapter of a format.

    Raises:
        EstateError: no installed package knows the format.
    """
    made = plugins.required(GROUP, name.value, f"knows the table format `{name}`", EstateError)
    return cast(TableFormat, made())


@cache
def actions_with(role: Role) -> frozenset[Action]:
    """The actions of all installed formats that have a role."""
    return frozenset(action for one in table_formats() for action, roles in one.actions.items() if role in roles)


@cache
def known_actions() -> frozenset[Action]:
    """Every action that a step can have here: the tool's own, and those of the installed formats."""
    own = {word for word in vars(Action).values() if isinstance(word, Action)}
    return frozenset(own.union(*(one.actions for one in table_formats())))


def known_format(name: Format | None) -> TableFormat | None:
    """The adapter of a format; None where it is none of tables, such as a topic's."""
    return format_of(name) if name is not None and name.value in format_names() else None


@cache
def metadata_folders() -> frozenset[str]:
    """Folders of a table's metadata, of whatever format: no data files of the table lie in them."""
    return frozenset[str]().union(*(one.metadata_folders for one in table_formats()))


@cache
def caseless_properties() -> dict[str, str]:
    """Names of properties of all formats that SQL may write in any case: in lower case, and as tables keep them."""
    return {name.lower(): name for one in table_formats() for name in one.caseless_properties}
