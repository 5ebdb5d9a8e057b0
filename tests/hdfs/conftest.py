"""One cluster for all tests of HDFS, and the shared Spark session."""

from tests.hdfssupport import hdfs
from tests.sparksession import spark, spark_estate

__all__ = ["hdfs", "spark", "spark_estate"]
