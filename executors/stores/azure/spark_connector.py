"""Azure Storage for Spark: Hadoop's ABFS driver, which Delta and Iceberg tables are written through.

https://hadoop.apache.org/docs/r3.3.4/hadoop-azure/abfs.html. A key is not among the settings, which Spark writes into
event logs: they name the variable of the environment that has it, and Hadoop takes its value from the environment of
the engine when it is asked (`${env.NAME}` of
https://hadoop.apache.org/docs/r3.3.4/api/org/apache/hadoop/conf/Configuration.html).
"""

from __future__ import annotations

from executors.engine.version_profiles import SPARK_3_5, Profile
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.stores.object_stores import DeclaredStore
from pii_tracer.lake.stores.azure.client import own_address
from pii_tracer.lake.stores.azure.login import KEY, SIGNATURE, secret_variable
from pii_tracer.model.azure_location import AzureLocation, azure_location, is_azure
from pii_tracer.model.errors import RunError

FILE_SYSTEM = "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem"
_HADOOP = "spark.hadoop."
_AUTH, _ENDPOINT = "fs.azure.account.auth.type", "fs.azure.abfs.endpoint"
_PACKAGES = {SPARK_3_5.name: ("org.apache.hadoop:hadoop-azure:3.3.4",)}


def packages(profile: Profile) -> tuple[str, ...]:
    """The driver, as Hadoop's version in this Spark needs it.

    Raises:
        RunError: this Spark was not tried with it.
    """
    if profile.name not in _PACKAGES:
        raise RunError(
            f"tables in Azure Storage are not supported with Spark {profile.name}",
            where="spark.profile",
            todo=f"use the profile {', '.join(_PACKAGES)}",
        )
    return _PACKAGES[profile.name]


def conf(estate: Estate) -> dict[str, str]:
    """Settings of a session that reaches Azure Storage as the estate file says.

    Raises:
        RunError: the driver cannot reach an account so: by a signature, by nothing, or at an address of its own.
    """
    stores = [store for store in estate.object_stores if is_azure(store.store)]
    _refuse_unaddressed(estate, stores)
    if any(name.startswith(f"{_HADOOP}{_AUTH}") for name in estate.spark.conf):
        return {}
    return dict(map(_key, stores))


def _refuse_unaddressed(estate: Estate, stores: list[DeclaredStore]) -> None:
    """Raises `RunError`: a container has an address of its own, and nobody says what the driver's is."""
    addresses = {_address(store) for store in stores}
    if addresses != {None} and (len(addresses) > 1 or f"{_HADOOP}{_ENDPOINT}" not in estate.spark.conf):
        raise RunError(
            "containers have an `endpoint`, but Spark's driver for Azure needs the address of their DFS service",
            where="object_stores",
            todo=(
                f"write it into `spark.conf` as `{_HADOOP}{_ENDPOINT}` (host:port), one for all containers; or use "
                "two estate files to erase their tables"
            ),
        )


def _address(store: DeclaredStore) -> str | None:
    """The address of a container that is not the one its account's name leads to."""
    return None if store.endpoint == own_address(azure_location(store.store)) else store.endpoint


def _key(store: DeclaredStore) -> tuple[str, str]:
    """The setting of an account's key."""
    place = azure_location(store.store)
    variable = None if store.anonymous else secret_variable(place)
    if variable is None or not variable.startswith(KEY):
        login = "no credentials" if store.anonymous else "the login that searches it (Entra ID)"
        raise _no_key(place, login if variable is None else f"a signature ({SIGNATURE})")
    return f"{_HADOOP}fs.azure.account.key.{place.account}.dfs.{place.suffix}", f"${{env.{variable}}}"


def _no_key(place: AzureLocation, what: str) -> RunError:
    return RunError(
        f"Spark erases Azure Storage tables, but cannot reach the account with {what}",
        where=place.store,
        todo=(
            f"set {KEY}_{place.account.upper()} to the account's key, or set a different login in the estate file, "
            f"`spark.conf` (`{_HADOOP}{_AUTH}`)"
        ),
    )
