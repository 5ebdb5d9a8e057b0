"""Names of tables in SQL: one spelling per table within a script, and schemas found by them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from pii_tracer.lake.formats.registry import format_names
from pii_tracer.lineage.sql.text.declared_variables import declared_in, tables_declared_in
from pii_tracer.lineage.sql.text.global_temp_views import global_view, is_global_view
from pii_tracer.lineage.sql.text.names_inside_tables import Part, parts_of

PATH_FORMATS = frozenset({*format_names(), "text", "binaryfile"})
"""Formats that Spark SQL reads directly by path: https://spark.apache.org/docs/latest/sql-data-sources-load-save-functions.html"""


def path_table(path: str) -> str:
    """A folder as a table name of its own (`INSERT OVERWRITE DIRECTORY`, `COPY INTO … FROM 'path'`)."""
    return f"path.`{path}`"


def is_place(table: str) -> bool:
    """True for a folder as `path_table` names it: files take their columns' names from what is written."""
    return table.startswith("path.`")


def is_location(name: str) -> bool:
    """A folder, a URI or a stage where a table's name could stand."""
    return name.startswith(("/", "@", "file:")) or "://" in name


_FILE = re.compile(r"\.(?:parquet|csv|tsv|json|jsonl|ndjson|orc|avro|xlsx|arrow)(?:\.\w{2,4})?$", re.IGNORECASE)
"""How names of files end that stand as one name where a table's could (DuckDB)."""


def _last(name: str) -> str:
    """What stands behind the last dot of a name: names that end alike have it in common."""
    return name.rpartition(".")[2]


def _session(part: exp.Expr) -> str:
    """T-SQL's sign of a table of the session, `#t` or `@t`, which is another one than `t`."""
    if isinstance(part, exp.Parameter):
        return "@"
    return "#" if isinstance(part, exp.Identifier) and part.args.get("temporary") else ""


def _is_path(name: str) -> bool:
    return "/" in name


class Loose(list[tuple[str, str]]):
    """Columns of a table of which nobody knows the order."""


_PAIRED = frozenset({"PARQUET", "ORC", "JSON", "AVRO"})
"""Formats whose files name their columns, and which engines read by these names."""


class Names:
    """Spelling of table names, and their schemas.

    A table of the given schemas is called as there. Others are qualified with the defaults, where given, or stay as
    they were first written. Names are compared without regard to case.
    """

    def __init__(
        self,
        schemas: Mapping[str, Sequence[tuple[str, str]]],
        default_db: str | None = None,
        default_schema: str | None = None,
        *,
        sure: bool = False,
    ) -> None:
        """sure: a name without a database means a table of one only where a default says so; others are told."""
        self._sure = sure
        self._schemas = {self._plain(name): (name, tuple(columns)) for name, columns in schemas.items()}
        self._by_last: dict[str, dict[str, None]] = {}
        for key in self._schemas:
            self._by_last.setdefault(_last(key), {})[key] = None
        self._loose = {self._plain(name) for name, columns in schemas.items() if isinstance(columns, Loose)}
        self._defaults = [d for d in (default_db, default_schema) if d]
        self._spelled: dict[str, str] = {}
        self._paired: set[str] = set()
        self._computed: dict[str, tuple[tuple[str, exp.Expression], ...]] = {}
        self._filled: dict[str, tuple[tuple[str, str], ...]] = {}
        self.variables: frozenset[str] = frozenset()
        self.table_variables: frozenset[str] = frozenset()
        """What the text at hand declares (`declared_variables`)."""

    def begin(self, sql: str) -> list[str]:
        """Take note of what a text declares; the defaults, which it may change for itself."""
        self.variables, self.table_variables = declared_in(sql), tables_declared_in(sql)
        return self._defaults

    @property
    def defaults(self) -> list[str]:
        """Catalog and database of names without one, as far as they are known."""
        return self._defaults

    @defaults.setter
    def defaults(self, names: list[str]) -> None:
        self._defaults = names

    @staticmethod
    def _plain(name: str) -> str:
        return name.replace("`", "").replace('"', "").strip().lower()

    def of(self, table: exp.Table) -> str:
        """The name of a table of a statement."""
        parts = [_session(p) + p.name for p in table.parts]
        if len(parts) >= 2 and parts[-2].lower() in PATH_FORMATS and table.this.args.get("quoted"):
            return self._spell(f"{parts[-2].lower()}.`{parts[-1].rstrip('/') or '/'}`")
        place = "" if len(parts) > 1 or isinstance(table.this, exp.Parameter) else parts[0].strip("'")
        if is_location(place) or _FILE.search(place):
            return self._spell(path_table(place.rstrip("/")))
        return self.of_text(".".join(parts))

    def of_text(self, written: str) -> str:
        """The name of a table given as dotted text."""
        plain = self._plain(written)
        if is_global_view(plain):  # in no catalog, and in no other database
            return global_view(plain.rpartition(".")[2])
        found = self._meant(plain)
        if len(found) == 1:
            return self._schemas[found[0]][0]
        return self._spell(self._qualified(written.replace("`", "")), self._qualified(plain))

    def guessed(self, table: exp.Table) -> str | None:
        """The table that a name without a database is taken for, where nothing says so."""
        plain = self._plain(table.name)
        if not self._sure or self._defaults or len(table.parts) > 1 or plain in self._schemas:
            return None
        found = self._meant(plain)
        return self._schemas[found[0]][0] if len(found) == 1 else None

    def _meant(self, plain: str) -> list[str]:
        """The tables with schemas that may be called so."""
        full = self._qualified(plain)
        for name in (plain, full):
            if name in self._schemas:
                return [name]
        alike = self._by_last.get(_last(plain), ())
        ends = [key for key in alike if key.endswith("." + plain) and not is_global_view(key)]
        if self._defaults:  # a table of the same name in another schema is another table
            ends = [key for key in ends if full.endswith("." + key) or key.endswith("." + full)]
        return ends

    def _qualified(self, name: str) -> str:
        missing = len(self._defaults) + 1 - len(name.split("."))
        return ".".join([*self._defaults[:missing], name]) if missing > 0 else name

    def _spell(self, written: str, key: str | None = None) -> str:
        return self._spelled.setdefault((key or written).lower(), written)

    def given(self, name: str) -> bool:
        """Whether a table of exactly this name has a schema."""
        return self._plain(name) in self._schemas

    def columns(self, name: str) -> tuple[tuple[str, str], ...]:
        """Columns (name, type) of a table as spelled here; empty when its schema is not known."""
        key = self._key(name)
        if key is not None:
            return self._schemas[key][1]
        part = self._part(name)
        if part is None:
            return ()
        return tuple((column, "") for column in part.columns) if part.metadata else self.columns(part.table)

    def loose(self, name: str) -> bool:
        """Whether the columns of a table are known and their order is not."""
        if not self._loose and not any(parts_of(name)):  # nothing has to be looked for
            return False
        key = self._key(name)
        if key is not None:
            return key in self._loose
        part = self._part(name)
        return part is not None and (part.loose if part.metadata else self.loose(part.table))

    def _part(self, name: str) -> Part | None:
        """What a name stands for that no table has, of a table with a schema; that is named as the schema is."""
        parts = tuple(parts_of(name))
        for part in () if not parts or self._meant(self._plain(name)) else parts:
            found = self._meant(self._plain(part.table))
            key = found[0] if len(found) == 1 else self._key(part.table)
            if key is not None:
                return Part(key, part.what)
        return None

    def _key(self, name: str) -> str | None:
        plain = self._plain(name)
        if plain in self._schemas or _is_path(plain):
            return plain if plain in self._schemas else None
        alike = self._by_last.get(_last(plain), ())
        shorter = [key for key in alike if plain.endswith("." + key) and not is_global_view(key)]
        return shorter[0] if len(shorter) == 1 else None

    def learn(self, name: str, columns: Sequence[tuple[str, str]]) -> None:
        """A statement created, or changed, a table's schema."""
        key = self._plain(name)
        self._schemas[key] = (name, tuple(columns))
        self._by_last.setdefault(_last(key), {})[key] = None
        self._loose.discard(self._plain(name))

    def pair(self, name: str, form: str) -> None:
        """Remember the format of a table's files, or of those at a place."""
        (self._paired.add if form.upper() in _PAIRED else self._paired.discard)(self._plain(name))

    def paired(self, name: str) -> bool:
        """Whether the columns of files are those of the same name, whatever their order."""
        return self._plain(name) in self._paired

    def compute(self, name: str, rules: Sequence[tuple[str, exp.Expression]]) -> None:
        """A table computes these columns from its others."""
        self._computed[self._plain(name)] = tuple(rules)

    def computed(self, name: str) -> tuple[tuple[str, exp.Expression], ...]:
        """The columns that a table computes from its others, as far as statements told."""
        return self._computed.get(self._plain(name), ())

    def fill(self, name: str, rules: Sequence[tuple[str, str]]) -> None:
        """A table fills these columns where a row comes without them (`filled_columns`)."""
        self._filled[self._plain(name)] = tuple(rules)

    def filled(self, name: str) -> tuple[tuple[str, str], ...]:
        """The columns that a table fills where a row comes without them, as far as statements told."""
        return self._filled.get(self._plain(name), ())

    def forget(self, name: str) -> None:
        """A table was dropped or renamed."""
        key = self._plain(name)
        self._schemas.pop(key, None)
        self._by_last.get(_last(key), {}).pop(key, None)
        self._computed.pop(key, None)
        self._filled.pop(key, None)
        self._loose.discard(self._plain(name))
