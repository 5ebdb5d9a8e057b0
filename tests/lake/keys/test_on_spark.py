from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.keys.envelope.cells import Binding, Mode
from pii_tracer.lake.keys.envelope.key_wrapping import LocalFile, Wrapper
from pii_tracer.lake.keys.envelope.spark_columns import decrypt_columns, encrypt_columns
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.lake.keys.test_cells import kek

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"phone": Binding("users", "phone"), "pan": Binding("users", "pan", Mode.EQUAL)}
ROWS = [(1, "9800012345", "ABCDE1234F", 5), (2, "9811100000", None, 6), (1, None, "ABCDE1234F", 7)]


@pytest.mark.spark
def test_columns_of_a_frame_until_the_key_is_destroyed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)  # workers with this environment's packages
    source = LocalFile(str(kek(tmp_path)))
    wrapper = Wrapper(source, 60)
    keys = frame_of_rows(spark, [(n, bytearray(wrapper.new_key(str(n)))) for n in (1, 2)], "uid long, wrapped binary")
    users = frame_of_rows(spark, ROWS, "uid long, phone string, pan string, amount int")
    names = {"person": "uid", "wrapped": "wrapped"}
    stored = frame_of_rows(
        spark,
        encrypt_columns(users, keys, COLUMNS, source, **names).collect(),
        "uid long, phone binary, pan binary, amount int",
    )
    assert [r.pan for r in stored.where("amount = 5").collect()] == [
        r.pan for r in stored.where("amount = 7").collect()
    ]

    def read(left):
        return sorted(map(tuple, decrypt_columns(stored, left, COLUMNS, source, **names).collect()), key=lambda r: r[3])

    assert read(keys) == ROWS
    assert read(keys.where("uid != 1")) == [(1, None, None, 5), ROWS[1], (1, None, None, 7)]
    with pytest.raises(Exception, match="no key was found"):
        encrypt_columns(users, keys.where("uid != 1"), COLUMNS, source, **names).collect()
