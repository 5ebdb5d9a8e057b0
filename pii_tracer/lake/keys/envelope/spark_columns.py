"""Encrypt and decrypt columns of Spark data frames, with the wrapped keys joined from the key table.

The keys come with the rows, so that a task holds only those of its own batches and no worker keeps a key that was
destroyed; what the session caches (`cache()`, broadcasts, running streams) must be shorter-lived than the declared
`cache_seconds`. Vectorised: `mapInArrow`, one unwrapping for each person of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pii_tracer.lake.keys.envelope.cells import Binding
from pii_tracer.lake.keys.envelope.columns import (
    Keys,
    Missing,
    decrypt_all,
    encrypt_all,
)
from pii_tracer.lake.keys.envelope.key_wrapping import Kms, LocalFile, Wrapper
from pii_tracer.lake.rows.spark_frames import map_in_arrow
from pii_tracer.model.errors import ShredError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Source = LocalFile | Kms
_WRAPPED = "__pii_tracer_wrapped"
_KEK_SECONDS = 300.0
"""How long a worker uses an opened KEK; a person's own key is gone with the batch."""


def encrypt_columns(
    frame: DataFrame, keys: DataFrame, columns: Mapping[str, Binding], source: Source, *, person: str, wrapped: str
) -> DataFrame:
    """The frame with these text or binary columns encrypted (binary).

    keys: the key table, with a column of the name `person` as in `frame`, and the wrapped key in `wrapped`.

    Raises (when the frame is computed):
        ShredError: a person without a key; nothing plain is passed through.
    """
    return _mapped(frame, keys, columns, source, person, wrapped, None)


def decrypt_columns(
    frame: DataFrame,
    keys: DataFrame,
    columns: Mapping[str, Binding],
    source: Source,
    *,
    person: str,
    wrapped: str,
    missing: Missing = Missing.NULL,
) -> DataFrame:
    """The frame with these columns decrypted to text; destroyed keys as `missing` says.

    Raises (when the frame is computed):
        ShredError: an altered or misplaced cell; a missing key with `Missing.ERROR`.
    """
    return _mapped(frame, keys, columns, source, person, wrapped, missing)


def _mapped(
    frame: DataFrame,
    keys: DataFrame,
    columns: Mapping[str, Binding],
    source: Source,
    person: str,
    wrapped: str,
    missing: Missing | None,
) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    unknown = sorted({person, *columns} - set(frame.columns))
    if unknown:
        raise ShredError(f"the frame has no column {', '.join(unknown)}", todo="use the column names of the frame")
    kind = BinaryType() if missing is None else StringType()
    schema = StructType(
        [StructField(field.name, kind, True) if field.name in columns else field for field in frame.schema.fields]
    )
    names = frame.columns
    own = keys.select(f.col(_quoted(person)).alias(_WRAPPED + "_person"), f.col(_quoted(wrapped)).alias(_WRAPPED))
    joined = frame.join(own, f.col(_quoted(person)) == f.col(_WRAPPED + "_person"), "left").drop(_WRAPPED + "_person")
    bindings = dict(columns)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wrapper = _wrapper(source)
        for batch in batches:
            yield _batch(batch, names, bindings, person, wrapper, missing)

    return map_in_arrow(joined, work, schema)


def _batch(
    batch: pa.RecordBatch,
    names: Sequence[str],
    bindings: Mapping[str, Binding],
    person: str,
    wrapper: Wrapper,
    missing: Missing | None,
) -> pa.RecordBatch:
    import pyarrow as pa

    persons = batch.column(person).cast(pa.string())
    found = zip(persons.to_pylist(), batch.column(_WRAPPED).to_pylist(), strict=True)
    opened = Keys.unwrapped({p: w for p, w in found if p is not None and w is not None}, wrapper)
    given = [(batch.column(name), binding) for name, binding in bindings.items()]
    if missing is None:
        turned = encrypt_all(given, persons, opened)
    else:
        turned = [c.cast(pa.string()) for c in decrypt_all(given, persons, opened, missing=missing)]
    done = dict(zip(bindings, turned, strict=True))
    return pa.RecordBatch.from_arrays([done.get(name, batch.column(name)) for name in names], names=list(names))


@lru_cache(maxsize=8)
def _wrapper(source: Source) -> Wrapper:
    """One for each worker process, so that KMS is asked once for a KEK and not for every batch."""
    return Wrapper(source, _KEK_SECONDS)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
