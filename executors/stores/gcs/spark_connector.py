"""Cloud Storage for Spark: Google's connector for Hadoop, which Delta tables are written through.

https://github.com/GoogleCloudDataproc/hadoop-connectors/blob/master/gcs/CONFIGURATION.md. Credentials are not among the
settings: the connector takes them from the machine, or from the key file that GOOGLE_APPLICATION_CREDENTIALS names;
other ways are set in the estate file, `spark.conf`. Its jar with all that it needs has a classifier, which Spark's
coordinates cannot say; the one without clashes with the Guava of Spark.
"""

from __future__ import annotations

from pathlib import Path

from executors.engine.version_profiles import SPARK_3_5, Profile
from executors.stores.fetched_jar import ClassifiedJar, fetched, place_of
from pii_tracer.config.estate_file import Estate
from pii_tracer.model.errors import RunError

FILE_SYSTEM = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"

_JAR = ClassifiedJar("com.google.cloud.bigdataoss", "gcs-connector", "hadoop3-2.2.26", "shaded")
_HADOOP = "spark.hadoop."


def jars(estate: Estate, profile: Profile) -> tuple[Path, ...]:
    """The connector's jar; none where the estate file names jars itself.

    Raises:
        RunError: this Spark was not tried with it, or it cannot be fetched.
    """
    settings = estate.spark.conf.get("spark.jars.ivySettings")
    return tuple(fetched(jar, profile, settings) for jar in _wanted(estate, profile))


def places_of_jars(estate: Estate, profile: Profile) -> tuple[Path, ...]:
    """Where the jars lie once they were fetched. Raises `RunError` as `jars`."""
    return tuple(place_of(jar, profile) for jar in _wanted(estate, profile))


def _wanted(estate: Estate, profile: Profile) -> tuple[ClassifiedJar, ...]:
    if estate.spark.conf.get("spark.jars"):
        return ()
    if profile.name != SPARK_3_5.name:
        raise RunError(
            f"tables in Cloud Storage are not supported with Spark {profile.name}",
            where="spark.profile",
            todo="use the profile 3.5, or set the connector's jar in the estate file, `spark.conf`, as `spark.jars`",
        )
    return (_JAR,)


def conf(estate: Estate) -> dict[str, str]:
    """Settings of a session that reaches Cloud Storage as the estate file says.

    Raises:
        RunError: two buckets are reached in two ways, which the connector cannot do.
    """
    ways = {(store.endpoint, store.anonymous) for store in estate.object_stores if store.store.startswith("gs://")}
    if len(ways) > 1:
        raise RunError(
            "buckets of Cloud Storage have different addresses or credentials, but Spark uses one for all buckets",
            where="object_stores",
            todo="use two estate files to erase the tables",
        )
    endpoint, anonymous = next(iter(ways), (None, False))
    settings = {
        "fs.gs.impl": FILE_SYSTEM,
        "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    }
    if endpoint is not None:
        settings["fs.gs.storage.root.url"] = endpoint
    if anonymous:
        settings |= {"fs.gs.auth.service.account.enable": "false", "fs.gs.auth.null.enable": "true"}
    return {f"{_HADOOP}{name}": value for name, value in settings.items()}
