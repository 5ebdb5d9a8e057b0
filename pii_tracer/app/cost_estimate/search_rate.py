"""How fast this machine searches files, by a short trial on a file that is made for it in memory."""

from __future__ import annotations

import io
import random
import time

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.value_forms import build_patterns

_ROWS = 60_000
_MOST_PERSONS = 1_000
"""More persons in one search are not tried: the patterns of so many take seconds to build."""
_SECONDS = 1.5


def search_rate(persons: int) -> float:
    """Bytes of Parquet (Snappy) that one thread decodes and searches in a second, for so many invented persons."""
    draw = random.Random(11)  # noqa: S311 (invented data, no secret)
    data = _parquet(draw)
    values = {str(draw.randrange(10**12, 10**13)) for _ in range(min(persons, _MOST_PERSONS))}
    found = tuple((f"person_{n}", value) for n, value in enumerate(sorted(values)))
    patterns = build_patterns([KeySet(name="user.id", origin="trial", weak=False, values=found)])
    scan_bytes("trial.parquet", data, patterns)  # the first search imports decoders
    best, begun = 0.0, time.perf_counter()
    while not best or time.perf_counter() - begun < _SECONDS:
        start = time.perf_counter()
        scan_bytes("trial.parquet", data, patterns)
        best = max(best, len(data) / (time.perf_counter() - start))
    return best


def _parquet(draw: random.Random) -> bytes:
    """A table as lakes have them: keys, addresses, amounts, words, moments."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = [f"w{draw.randrange(10**6):06d}" for _ in range(5_000)]
    columns = {
        "id": [draw.randrange(10**12, 10**13) for _ in range(_ROWS)],
        "mail": [f"{draw.choice(words)}.{n}@north.example" for n in range(_ROWS)],
        "amount": [draw.random() * 1000 for _ in range(_ROWS)],
        "state": [draw.choice(words[:20]) for _ in range(_ROWS)],
        "note": [" ".join(draw.choices(words, k=6)) for _ in range(_ROWS)],
        "at": [1_700_000_000_000 + draw.randrange(10**10) for _ in range(_ROWS)],
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="snappy")
    return out.getvalue()
