"""Encrypted columns against plain ones: cells a second on one core, unwrapping of the keys included, and bytes a cell.

Rows come in batches as Spark gives them (10,000, `spark.sql.execution.arrow.maxRecordsPerBatch`), each with its keys
wrapped. The peers, in the same run: a plain column on the same way (Arrow to Python values and back), and the bare
ciphers: for each person a key derived and a cipher made, for each cell one call, and nothing else.
Run: `make bench-shred`.
"""

from __future__ import annotations

import hmac
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from pii_tracer.lake.keys.envelope.cells import Binding, Mode
from pii_tracer.lake.keys.envelope.columns import Keys, decrypt_all, encrypt_all
from pii_tracer.lake.keys.envelope.key_wrapping import LocalFile, Wrapper

ROWS = 10_000
COLUMNS = 3
TARGET = 300_000


def best(works: dict[str, Callable[[], object]], times: int = 30) -> dict[str, float]:
    """Seconds of processor time of each one's fastest run, in turns."""
    took: dict[str, float] = {}
    for _ in range(times):
        for name, work in works.items():
            began = time.process_time()
            work()
            took[name] = min(took.get(name, 1e9), time.process_time() - began)
    return took


def main() -> None:
    """Print one line for each mode and number of cells a person has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kek")
        path.write_bytes(os.urandom(32))
        path.chmod(0o600)
        wrapper = Wrapper(LocalFile(str(path)), 3600)
        values = pa.array([f"98{n:08d}" for n in range(ROWS)])
        plain = best({"plain": lambda: pa.array(values.to_pylist(), pa.string())})["plain"]
        print(
            f"plain column, to Python values and back: {ROWS / plain:,.0f} cells/s, {values.nbytes / ROWS:.0f} bytes/cell"
        )
        print(a_table(wrapper, values))
        for each in (1, 10, 1000):
            persons = pa.array([f"person-{n // each}" for n in range(ROWS)])
            wrapped = {p: wrapper.new_key(p) for p in persons.unique().to_pylist()}
            for mode in Mode:
                columns = [(values, Binding("lake.prod.users", f"column{n}", mode)) for n in range(COLUMNS)]
                cells = [
                    (done, binding)
                    for done, (_, binding) in zip(
                        encrypt_all(columns, persons, Keys.unwrapped(wrapped, wrapper)), columns, strict=True
                    )
                ]
                works = {
                    "bare": partial(bare, mode, wrapped, wrapper, each),
                    "encrypt": lambda c=columns, p=persons, w=wrapped: encrypt_all(c, p, Keys.unwrapped(w, wrapper)),
                    "decrypt": lambda c=cells, p=persons, w=wrapped: decrypt_all(c, p, Keys.unwrapped(w, wrapper)),
                }
                took = best(works)
                rates = {name: COLUMNS * ROWS / seconds for name, seconds in took.items()}
                worst = min(rates["encrypt"], rates["decrypt"])
                print(
                    f"{mode.value:6} {COLUMNS} columns, {each:4} rows a person: encrypt {rates['encrypt']:>9,.0f} cells/s "
                    f"({took['encrypt'] / (plain * COLUMNS):.0f}x plain), decrypt {rates['decrypt']:>9,.0f} cells/s, "
                    f"bare ciphers {rates['bare']:>9,.0f}/s, {cells[0][0].nbytes / ROWS:.0f} bytes/cell"
                    + ("" if worst >= TARGET else f"  (below {TARGET:,})")
                )


def a_table(wrapper: Wrapper, values: pa.Array) -> str:
    """A table of people, one row each: four columns that nobody joins by, and one that stays joinable."""
    modes = [*[Mode.RANDOM] * 4, Mode.EQUAL]
    persons = pa.array([f"person-{n}" for n in range(ROWS)])
    wrapped = {p: wrapper.new_key(p) for p in persons.to_pylist()}
    columns = [(values, Binding("lake.prod.users", f"column{n}", mode)) for n, mode in enumerate(modes)]
    made = encrypt_all(columns, persons, Keys.unwrapped(wrapped, wrapper))
    cells = [(done, binding) for done, (_, binding) in zip(made, columns, strict=True)]
    took = best(
        {
            "encrypt": lambda: encrypt_all(columns, persons, Keys.unwrapped(wrapped, wrapper)),
            "decrypt": lambda: decrypt_all(cells, persons, Keys.unwrapped(wrapped, wrapper)),
        }
    )
    told = ", ".join(f"{name} {len(modes) * ROWS / seconds:>9,.0f} cells/s" for name, seconds in took.items())
    return f"a table of people, 4 random columns and 1 equal, 1 row a person: {told}"


def bare(mode: Mode, wrapped: dict[str, bytes], wrapper: Wrapper, each: int) -> None:
    """What the library's ciphers take by themselves."""
    value, nonce, bound = b"\0" + b"9800000000", b"n" * 12, b"b" * 64
    for key in wrapper.unwrap_all(wrapped).values():
        if mode is Mode.RANDOM:
            random = AESGCM(hmac.digest(key, b"AES-256-GCM\x01", "sha256")).encrypt
            for _ in range(each * COLUMNS):
                random(nonce, value, bound)
        else:
            equal = AESSIV(hmac.digest(key, b"AES-SIV\x01", "sha512")).encrypt
            for _ in range(each * COLUMNS):
                equal(value, [bound])


if __name__ == "__main__":
    main()
