"""A large estate in numbers: layers of tables, each made from three tables about a layer before; some cycles."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.lineage.graph.array_encoding import Parts, assemble
from pii_tracer.lineage.graph.array_file import pack
from pii_tracer.lineage.graph.arrays import (
    HAS_SCHEMA,
    IS_NODE,
    SUBTYPES,
    kind_code,
)
from pii_tracer.lineage.graph.edges import EdgeType, Subtype

LAYERS, PARENTS = 25, 3
SQL = "INSERT OVERWRITE TABLE t SELECT " + ", ".join(f"a.c{n}" for n in range(120)) + " FROM a JOIN b USING (id)"


def write(file: Path, columns: int, edges: int, wide: int = 40) -> None:
    """Write the store of an estate with so many columns, `wide` a table, and so many edges. Always the same one."""
    pieces, _ = pack(assemble(parts(columns, edges, wide)))
    write_atomic(file, b"".join(pieces))


def parts(columns: int, edges: int, wide: int) -> Parts:
    """The numbers of the estate; a table reads tables of the layer before it, and one time in fifty a later one."""
    chance = np.random.default_rng(11)
    tables = columns // wide
    layer = max(1, tables // LAYERS)
    parents = np.arange(tables)[:, None] - layer + chance.integers(-layer // 2, layer // 2 + 1, (tables, PARENTS))
    back = chance.random((tables, PARENTS)) < 0.02
    parents = np.where(
        back, np.arange(tables)[:, None] + chance.integers(1, layer // 4 + 2, (tables, PARENTS)), parents
    )
    target = chance.integers(layer * wide, tables * wide, edges)
    owner = target // wide
    source_table = np.clip(parents[owner, chance.integers(0, PARENTS, edges)], 0, tables - 1)
    source = source_table * wide + chance.integers(0, wide, edges)
    kinds = np.array([
        kind_code(EdgeType.DIRECT, Subtype.IDENTITY, False), kind_code(EdgeType.DIRECT, Subtype.TRANSFORMATION, False),
        kind_code(EdgeType.DIRECT, Subtype.TRANSFORMATION, True), kind_code(EdgeType.INDIRECT, Subtype.CONDITIONAL, False),
    ], np.uint8)  # fmt: skip
    expressions = sorted({f"upper(trim(source_{n:06d}.column_{n % wide:02d}))" for n in range(edges // 10)})
    u32 = np.uint32
    members = np.repeat(np.arange(layer, tables), 2)
    filtered = np.clip(parents[members, 0], 0, tables - 1) * wide
    return Parts(
        datasets=[("file", f"/lakehouse/warehouse/layer_{t // layer:02d}/table_{t:06d}") for t in range(tables)],
        roles=[IS_NODE | HAS_SCHEMA] * tables,
        columns=(np.repeat(np.arange(tables, dtype=u32), wide), np.tile(np.arange(1, wide + 1, dtype=u32), tables)),
        words=["bigint", *(f"column_{n:03d}" for n in range(wide))],
        expressions=expressions,
        evidence=[json.dumps([{"source": "sql", "where": f"jobs/{t:06d}.sql:1"}]) for t in range(tables)],
        schema=(
            np.repeat(np.arange(tables, dtype=u32), wide),
            np.arange(tables * wide, dtype=u32),
            np.zeros(tables * wide, u32),
        ),
        edges=(
            source.astype(u32),
            target.astype(u32),
            chance.choice(kinds, edges, p=[0.5, 0.25, 0.05, 0.2]),
            chance.integers(0, len(expressions) + 1, edges, dtype=u32),
            owner.astype(u32),
        ),
        members=(
            members.astype(u32),
            (filtered + np.tile([0, 1], tables - layer)).astype(u32),
            np.full(len(members), SUBTYPES.index(Subtype.FILTER), np.uint8),
            members.astype(u32),
        ),
        jobs=[(t, [int(p) for p in np.clip(parents[t], 0, tables - 1)], _job(t, layer)) for t in range(layer, tables)],
        gaps=[],
        aliases=sorted((f"lake.layer_{t // layer:02d}.table_{t:06d}", t) for t in range(tables)),
    )


def _job(table: int, layer: int) -> str:
    output = {"namespace": "file", "name": f"/lakehouse/warehouse/layer_{table // layer:02d}/table_{table:06d}"}
    return json.dumps({"job": f"job_{table}", "sql": SQL, "inputs": [], "output": output, "where": f"jobs/{table}.sql"})
