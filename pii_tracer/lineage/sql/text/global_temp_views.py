"""Spark's global temporary views: of one application, in no catalog, and read by `global_temp.v` alone.

https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-create-view.html. `v` without its database is something else.
"""

from __future__ import annotations

_DATABASE = "global_temp"


def global_view(view: str) -> str:
    """The one spelling of a global view's name."""
    return f"{_DATABASE}.{view.lower()}"


def is_global_view(name: str) -> bool:
    """Whether a table's name in a statement is that of a global view."""
    database, _, view = name.partition(".")
    return database.lower() == _DATABASE and bool(view) and "." not in view
