"""One cluster for all tests of HDFS."""

from tests.hdfssupport import hdfs

__all__ = ["hdfs"]
