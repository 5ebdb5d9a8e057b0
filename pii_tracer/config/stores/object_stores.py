"""The estate file's `object_stores`: buckets beside S3, and the places in them that hold files (docs/gcs.md)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pii_tracer.model.azure_location import azure_location, is_azure
from pii_tracer.model.datasets import Frozen, Said
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import ObjectLocation, object_location

_HERE = ("127.0.0.1", "localhost", "::1")
"""This machine: what goes there over plain HTTP, nobody else reads."""


class Agreed(Frozen):
    """Old versions whose object was deleted may go with everybody in them. owner: who agreed; reason: why nobody needs
    them. Reviewers see both.
    """

    owner: Said
    reason: Said


class StoredFiles(Frozen):
    """A folder of a store, with all that lies below it: one dataset. prefix: as `exports/users`; empty for the whole
    store. deletable: see `Agreed`; old versions of objects that still exist go without it.
    """

    prefix: str = Field(pattern=r"^([^/\x00][^\x00]*)?$")
    deletable: Agreed | None = None


class DeclaredStore(Frozen):
    """A bucket or container.

    store: as places in it are written, `gs://bucket` or `abfss://container@account.dfs.core.windows.net`. endpoint:
    the address of its API, where that is not the provider's own; dfs_endpoint: that of Azure's DFS service. anonymous:
    requests carry no credentials, as emulators want it; otherwise the environment has them.
    """

    store: str = Field(pattern=r"^(gs://[A-Za-z0-9][A-Za-z0-9._-]*|abfss://[A-Za-z0-9$][A-Za-z0-9._@-]*)$")
    endpoint: str | None = None
    dfs_endpoint: str | None = None
    anonymous: bool = False
    places: tuple[StoredFiles, ...] = Field(min_length=1)

    @field_validator("store", mode="before")
    @classmethod
    def _one_spelling(cls, store: object) -> object:
        if not isinstance(store, str) or not is_azure(store):
            return store
        try:
            location = azure_location(store)
        except EstateError as error:
            raise ValueError(f"{error.what}: {error.todo}") from None
        if location.path:
            raise ValueError("name only the container; list its folders under `places`")
        return location.store

    @field_validator("endpoint", "dfs_endpoint")
    @classmethod
    def _address(cls, endpoint: str | None) -> str | None:
        if endpoint is None:
            return None
        scheme, _, rest = endpoint.rstrip("/").partition("://")
        if scheme not in ("http", "https") or not rest or set(rest) & set("?#@ "):
            raise ValueError("write the endpoint as `https://host:port`")
        return endpoint.rstrip("/")

    @model_validator(mode="after")
    def _no_open_token(self) -> DeclaredStore:
        for parts in map(urlsplit, filter(None, (self.endpoint, self.dfs_endpoint))):
            if parts.scheme == "http" and parts.hostname not in _HERE and not self.anonymous:
                raise ValueError(
                    "credentials would go over plain HTTP: write an `https://` endpoint, or `anonymous: true`"
                )
        if self.dfs_endpoint and not is_azure(self.store):
            raise ValueError("`dfs_endpoint` applies only to a container of Azure Storage; remove it")
        return self

    def located(self) -> Iterator[tuple[ObjectLocation, StoredFiles]]:
        """Its places, with where each lies."""
        for place in self.places:
            yield object_location(f"{self.store}/{place.prefix}"), place


def wrong_object_stores(stores: tuple[DeclaredStore, ...]) -> str | None:
    """Why stores cannot be declared so; None where they can."""
    if len({store.store for store in stores}) != len(stores):
        return "a store is declared twice under `object_stores`"
    places = [location for store in stores for location, _ in store.located()]
    for number, one in enumerate(places):
        for other in places[number + 1 :]:
            if one.holds(other) or other.holds(one):
                return f"two places of `object_stores` overlap: {one} and {other}; declare one of them"
    return None
