"""The graph in one file: versioned, written whole or not at all, mapped into memory and not read into objects."""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path

from pii_tracer.common.atomic_files import sweep_temporaries, write_atomic
from pii_tracer.lineage.graph.array_file import pack, unpack
from pii_tracer.lineage.graph.canonical_facts import text_of
from pii_tracer.lineage.graph.edges import BY_USER, NOT_STORED, JobRef
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.graph.string_pool import Pool
from pii_tracer.model.errors import LineageError


def save(graph: LineageGraph, file: Path) -> None:
    """Write the graph; an equal graph gives an equal file.

    The file outlives the runs, whose sealed values are destroyed: it has no statement, and in expressions no literal
    that can be a value of a person. Names of columns, folders and jobs can be one: the file is for its owner alone.

    Raises:
        OSError: as the file system says; an older file is then untouched.
    """
    from pii_tracer.lineage.graph.stored_expressions import stored  # the tokenizer takes long to load

    made = graph.columnar
    jobs = map(_without_text, made.jobs)
    pieces, _ = pack(replace(made, expressions=Pool.of(map(stored, made.expressions)), jobs=Pool.of(jobs)))
    sweep_temporaries(file.parent)
    write_atomic(file, b"".join(pieces), mode=0o600)


def _without_text(job: str) -> str:
    """A job whose statement and views are known to be recorded, without their texts and constants: each engine has its
    own rules for where a text in SQL begins and ends, and nobody reads them from the file.
    """
    told = JobRef.model_validate_json(job)
    views = tuple((name, NOT_STORED) for name, _ in told.views)
    sql, statement = (text if text is None else NOT_STORED for text in (told.sql, told.statement))
    filled = tuple((column, constant) for column, constant in told.filled if constant in ("", BY_USER))
    changes = {"sql": sql, "statement": statement, "views": views, "filled": filled}
    return text_of(told.model_copy(update=changes))


def load(file: Path) -> LineageGraph:
    """Map a graph's file; objects are made when they are asked for. Files are only ever replaced, never written into,
    so a graph stays what it was when the next harvest writes its own.

    Raises:
        LineageError: no such file, cut, broken, changed since, or of a version this program does not know.
    """
    try:
        with file.open("rb") as stream:
            data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise LineageError("there is no lineage graph yet", where=str(file), todo="run `pii-tracer harvest`") from None
    except (OSError, ValueError):
        raise LineageError("the lineage graph cannot be read", where=str(file), todo="harvest again") from None
    columnar, digest = unpack(data, str(file))
    return LineageGraph.of(columnar, digest)
