"""S3 for Spark: Hadoop's S3A, which Delta and Iceberg tables are written through.

https://hadoop.apache.org/docs/r3.3.4/hadoop-aws/tools/hadoop-aws/index.html. Credentials are not among the settings:
S3A finds them in the environment and from the machine's role; other ways are set in the estate file, `spark.conf`.
"""

from __future__ import annotations

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.s3.archive_versions import s3_settings

SCHEME = "s3a://"

FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def s3a_conf(estate: Estate) -> dict[str, str]:
    """Settings of a session that reaches S3 as the estate file says; of a Connect server's owner is what jars it has.

    Raises:
        EstateError: the estate file does not say how S3 is reached.
    """
    settings = s3_settings(estate)
    conf = {
        # Iceberg's metadata names files as whoever wrote it spells them
        "spark.hadoop.fs.s3.impl": FILE_SYSTEM,
        "spark.hadoop.fs.s3n.impl": FILE_SYSTEM,
        "spark.hadoop.fs.s3a.endpoint.region": settings.region,
        # a refusal is told soon; the default waits for minutes
        "spark.hadoop.fs.s3a.attempts.maximum": "5",
    }
    if settings.endpoint_url is not None:
        conf["spark.hadoop.fs.s3a.endpoint"] = settings.endpoint_url
        # a server of one's own has no host name per bucket
        conf["spark.hadoop.fs.s3a.path.style.access"] = "true"
        conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(settings.endpoint_url.startswith("https:")).lower()
    return conf
