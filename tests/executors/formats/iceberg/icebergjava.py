"""What other engines write into Iceberg tables and Spark SQL cannot: equality deletes, and a compaction that ignores them.

Commits go through Iceberg's own Java API; the files are written here. https://iceberg.apache.org/spec/#delete-formats
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load(spark: SparkSession, name: str) -> Any:
    """The table as Iceberg's Java API has it."""
    java: Any = spark
    return java._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java._jsparkSession, name)


def equality_delete(spark: SparkSession, name: str, location: Path, column: str, values: list[int]) -> Path:
    """Delete rows as Flink does: a file with the values of a column, its bounds, and a commit that reads nothing."""
    java: Any = spark
    jvm, gateway, table = java._jvm, java.sparkContext._gateway, load(spark, name)
    field = table.schema().findField(column).fieldId()
    schema = pa.schema([pa.field(column, pa.int64(), metadata={b"PARQUET:field_id": str(field).encode()})])
    file = location / "data" / f"equality-{abs(hash(tuple(values)))}.parquet"
    pq.write_table(pa.table({column: values}, schema=schema), file)
    fields = gateway.new_array(jvm.int, 1)
    fields[0] = field
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(fields)
    builder = builder.withPath(str(file)).withFormat(jvm.org.apache.iceberg.FileFormat.PARQUET)
    config = jvm.org.apache.iceberg.MetricsConfig.getDefault()
    metrics = jvm.org.apache.iceberg.parquet.ParquetUtil.fileMetrics(table.io().newInputFile(str(file)), config)
    made = builder.withFileSizeInBytes(file.stat().st_size).withMetrics(metrics).build()
    table.newRowDelta().addDeletes(made).commit()
    return file


def compact_ignoring_deletes(spark: SparkSession, name: str, location: Path) -> None:
    """Write every data file again as it is and swap old for new, as an engine does that knows no delete files."""
    java: Any = spark
    jvm, table = java._jvm, load(spark, name)
    swap = table.newOverwrite()
    tasks = table.newScan().planFiles().iterator()
    number = 0
    while tasks.hasNext():
        old = tasks.next().file()
        number += 1
        new = location / "data" / f"compacted-{number}.parquet"
        pq.write_table(pq.read_table(str(old.location()).removeprefix("file:")), new)
        builder = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).withPath(str(new))
        builder = builder.withFormat(jvm.org.apache.iceberg.FileFormat.PARQUET)
        builder = builder.withFileSizeInBytes(new.stat().st_size).withRecordCount(old.recordCount())
        swap = swap.deleteFile(old).addFile(builder.build())
    swap.commit()
