from tests.sparksession import spark, spark_estate  # noqa: F401
