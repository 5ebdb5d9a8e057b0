"""All places of an estate as one stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.listing.listed_place import ListedPlace, Listing, NotListed
from pii_tracer.lake.listing.local_file_sizes import LocalPlaces
from pii_tracer.lake.listing.store_file_sizes import StoredPlaces

_SAY_EVERY = 1_000


def list_estate(estate: Estate, base: Path, progress: Callable[[str], None] = lambda _: None) -> Listing:
    """Places of this machine, then those in stores. base: folder of the estate file. progress: hears how many passed.

    Raises:
        EstateError: the estate file names places that are none, or a catalog's client library is not installed.
    """
    paths, not_listed = EstatePaths(estate, base), list[NotListed]()
    sources = (LocalPlaces(paths, not_listed), StoredPlaces(estate, paths, not_listed))

    def places() -> Iterator[ListedPlace]:
        for number, place in enumerate(chain(*sources), 1):
            if number % _SAY_EVERY == 0:
                progress(counted(number, "place"))
            yield place

    return Listing(places(), not_listed)
