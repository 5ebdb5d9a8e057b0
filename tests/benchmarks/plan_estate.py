"""A large estate to plan for: its graph in a file, its inventory and evidence as discovery and scan would give them.

Of twenty tables three are written from the persons' tables with the key, one with its hash, one by adding up; fifteen
belong to other business and are joined at most. All have a hundred columns, one edge a column, and the statement of their job.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.array_encoding import Parts, assemble
from pii_tracer.lineage.graph.array_file import pack
from pii_tracer.lineage.graph.arrays import (
    HAS_SCHEMA,
    IS_NODE,
    SUBTYPES,
    kind_code,
)
from pii_tracer.lineage.graph.edges import EdgeType, Subtype
from pii_tracer.model.datasets import Column, DatasetId
from planners.copies.scan_evidence import Evidence

WIDE = 100
DEPTH = 8
PERSON = ("user_id", "email", "phone", "pan")
HASHED = "sha2(CAST(p.user_id AS STRING), 256)"
FORMATS = (ICEBERG, DELTA, ICEBERG, DELTA, HUDI)


@dataclass(frozen=True)
class Table:
    """One table. kind: `source`, `copy`, `hashed`, `sums` or `other`. parent: what it is written from."""

    number: int
    kind: str
    parent: int | None
    joined: int | None

    @property
    def name(self) -> str:
        return f"lake.area_{self.number % 50:02d}.table_{self.number:06d}"

    @property
    def path(self) -> str:
        return "/lakehouse/warehouse/" + self.name.replace(".", "/")

    @property
    def dataset(self) -> DatasetId:
        return DatasetId(namespace="file", name=self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        first = {"hashed": ("user_key",), "sums": (), "other": ()}.get(self.kind, PERSON)
        return first + tuple(f"c_{n:03d}" for n in range(len(first), WIDE))


def tables(number: int) -> list[Table]:
    """The tables of an estate of so many, upstream before downstream. Always the same ones."""
    chance = Random(7)
    kinds = ["copy", "hashed", "copy", "sums", "copy", *["other"] * 15]
    found = [Table(0, "source", None, None), Table(1, "other", None, None)]
    layers: dict[str, list[list[int]]] = {"copy": [[0]], "other": [[1]]}
    for layer in range(DEPTH):
        first, last = (max(2, number * n // DEPTH) for n in (layer, layer + 1))
        fresh: dict[str, list[int]] = {"copy": [], "other": []}
        for n in range(first, last):
            kind = kinds[n % len(kinds)]
            from_ = layers["other" if kind == "other" else "copy"][-1]
            joined = chance.choice(layers["other"][-1]) if kind == "copy" else None
            found.append(Table(n, kind, chance.choice(from_), joined))
            if kind in fresh:
                fresh[kind].append(n)
        for kind, numbers in fresh.items():
            layers[kind].append(numbers or layers[kind][-1])
    return found


_DIRECT = {s: kind_code(EdgeType.DIRECT, s, False) for s in (Subtype.IDENTITY, Subtype.TRANSFORMATION)}
_MASKED = kind_code(EdgeType.DIRECT, Subtype.TRANSFORMATION, True)
_ADDED = kind_code(EdgeType.DIRECT, Subtype.AGGREGATION, False)


def _column(table: Table, known: list[Table], name: str) -> tuple[int, str, int, str | None]:
    """Where a column comes from: table, its column, kind of edge, expression."""
    parent = known[table.parent or 0]
    number = int(name[2:]) if name.startswith("c_") else None
    if table.kind == "hashed" and name == "user_key":
        return parent.number, "user_id", _MASKED, HASHED
    if name == "email" and table.number % 40 == 22:
        return parent.number, name, _DIRECT[Subtype.TRANSFORMATION], f"lower(trim(p.{name}))"
    if number is None:
        return parent.number, name, _DIRECT[Subtype.IDENTITY], f"p.{name}"
    if table.joined is not None and number >= 80:
        return table.joined, name, _DIRECT[Subtype.IDENTITY], f"d.{name}"
    origin = name if name in parent.columns else f"c_{number + 50:03d}"
    if table.kind == "sums" and number != 10:
        return parent.number, origin, _ADDED, f"SUM(p.{origin})"
    if number % 5 == 4:
        return parent.number, origin, _DIRECT[Subtype.TRANSFORMATION], f"upper(trim(p.{origin}))"
    return parent.number, origin, _DIRECT[Subtype.IDENTITY], f"p.{origin}"


def statement(table: Table, known: list[Table]) -> str:
    """The text of the job that writes a table."""
    parent = known[table.parent or 0]
    chosen = [f"{_column(table, known, name)[3]} AS {name}" for name in table.columns]
    text = f"INSERT OVERWRITE TABLE {table.name} SELECT {', '.join(chosen)} FROM {parent.name} p"
    if table.joined is not None:
        text += f" LEFT JOIN {known[table.joined].name} d ON p.c_010 = d.c_010"
    return text + (" GROUP BY p.c_010" if table.kind == "sums" else "")


def write(file: Path, number: int) -> None:
    """Write the graph of an estate of so many tables."""
    pieces, _ = pack(assemble(_parts(tables(number))))
    write_atomic(file, b"".join(pieces))


def _parts(known: list[Table]) -> Parts:
    by_path = {t.path: t for t in sorted(known, key=lambda t: t.path)}
    places = {t.number: n for n, t in enumerate(by_path.values())}
    named = [(places[t.number], c) for t in by_path.values() for c in sorted(t.columns)]
    column = {key: n for n, key in enumerate(named)}
    words = {w: n for n, w in enumerate(sorted({"bigint", "string", *(c for _, c in named)}))}
    made = [t for t in by_path.values() if t.parent is not None]
    edges = [(t, c, *_column(t, known, c)) for t in made for c in t.columns]
    expressions = {e: n + 1 for n, e in enumerate(sorted({e for *_, e in edges if e}))}
    evidence = sorted(json.dumps([{"source": "sql", "where": _where(t), "job": _job(t)}]) for t in made)
    said = {json.loads(text)[0]["job"]: n for n, text in enumerate(evidence)}
    members = [(t, places[o], s) for t in made for o, s in _deciding(t)]
    u32 = np.uint32
    return Parts(
        datasets=[("file", path) for path in by_path],
        roles=[IS_NODE | HAS_SCHEMA] * len(by_path),
        columns=(np.array([d for d, _ in named], u32), np.array([words[c] for _, c in named], u32)),
        words=list(words),
        expressions=list(expressions),
        evidence=evidence,
        schema=(
            np.array([places[t.number] for t in by_path.values() for _ in t.columns], u32),
            np.array([column[places[t.number], c] for t in by_path.values() for c in t.columns], u32),
            np.array([words[_type(c)] for t in by_path.values() for c in t.columns], u32),
        ),
        edges=(
            np.array([column[places[source], name] for _, _, source, name, _, _ in edges], u32),
            np.array([column[places[t.number], c] for t, c, *_ in edges], u32),
            np.array([kind for *_, kind, _ in edges], np.uint8),
            np.array([expressions[e] if e else 0 for *_, e in edges], u32),
            np.array([said[_job(t)] for t, *_ in edges], u32),
        ),
        members=(
            np.array([places[t.number] for t, _, _ in members], u32),
            np.array([column[o, "c_010"] for _, o, _ in members], u32),
            np.array([SUBTYPES.index(s) for *_, s in members], np.uint8),
            np.array([said[_job(t)] for t, _, _ in members], u32),
        ),
        jobs=[
            (places[t.number], [places[n] for n in (t.parent, t.joined) if n is not None], _told(t, known))
            for t in made
        ],
        gaps=[],
        aliases=sorted((t.name, places[t.number]) for t in known),
    )


def _deciding(table: Table) -> Iterator[tuple[int, Subtype]]:
    if table.joined is not None:
        yield table.joined, Subtype.JOIN
    if table.kind == "sums":
        yield table.parent or 0, Subtype.GROUP_BY


def _job(table: Table) -> str:
    return f"job_{table.number:06d}"


def _where(table: Table) -> str:
    return f"jobs/{table.number:06d}.sql:1"


def _type(column: str) -> str:
    return "bigint" if column == "user_id" else "string"


def _told(table: Table, known: list[Table]) -> str:
    inputs = [known[n].dataset.model_dump() for n in (table.parent, table.joined) if n is not None]
    text = statement(table, known)
    told = {"job": _job(table), "sql": text, "statement": text, "inputs": inputs}
    return json.dumps({**told, "output": table.dataset.model_dump(), "where": _where(table)})


def inventory(known: list[Table]) -> Inventory:
    """What discovery would find of the estate."""

    @cache
    def columns(kind: str) -> tuple[tuple[str, str], ...]:
        return tuple((c, _type(c)) for c in next(t for t in known if t.kind == kind).columns)

    states = [
        TableState(
            dataset=t.dataset,
            table=t.name,
            location=t.path,
            format=FORMATS[t.number % len(FORMATS)],
            snapshot=str(8376484859525507954 + t.number),
            columns=tuple(Column(name=name, type=type_) for name, type_ in columns(t.kind)),
            write_mode="cow" if FORMATS[t.number % len(FORMATS)] is HUDI else "merge-on-read",
            rows=1_000_000,
            files=64,
            bytes=1_000_000_000,
        )
        for t in known
    ]
    return Inventory(tables=tuple(sorted(states, key=lambda s: s.location)))


def evidence(known: list[Table]) -> dict[str, Evidence]:
    """What the scan would see: the key, or its hash, wherever it was written to."""
    strong = {
        "source": "person.user_id",
        "copy": "person.user_id",
        "hashed": "person.user_id|SHA2(CAST(x AS STRING), 256)",
    }
    return {
        t.path: Evidence(
            files=64,
            files_with_person=40 if t.kind in strong else 0,
            bytes=600_000_000 if t.kind in strong else 0,
            strong=frozenset({strong[t.kind]}) if t.kind in strong else frozenset(),
            rows=120 if t.kind in strong else None,
        )
        for t in known
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
