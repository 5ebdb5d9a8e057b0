"""What Hudi needs of Spark: https://hudi.apache.org/docs/quick-start-guide; versions: docs/stack.md."""

from __future__ import annotations

from executors.engine.version_profiles import SPARK_3_5
from executors.formats.base import Build, SparkSupport
from pii_tracer.lake.formats.hudi.vocabulary import HUDI


class HudiOnSpark(SparkSupport):
    """There is a bundle of Hudi for Spark 3.5 alone."""

    formats = frozenset({HUDI})
    rank = 30
    builds = {
        SPARK_3_5.name: Build(
            ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",),
            ("org.apache.spark.sql.hudi.HoodieSparkSessionExtension",),
            (
                ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
                ("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar"),
            ),
        )
    }
    conflicts = ("HoodieWriteConflict",)
    own_columns = ("_hoodie_",)
