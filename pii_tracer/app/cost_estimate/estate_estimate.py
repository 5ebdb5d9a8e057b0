"""Estimating an erasure: what exists by listings alone, and what erasing persons from it would take."""

from __future__ import annotations

import math
from datetime import datetime

from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.settings import Settings, moment
from pii_tracer.lake.listing.estate_file_sizes import list_estate
from pii_tracer.model.errors import UsageError
from pii_tracer.model.estimate import TOUCHED, Estimate
from planners.estimate.arithmetic import MIB, Asked
from planners.estimate.whole_estimate import make_estimate


def estimate(
    settings: Settings,
    *,
    persons: int,
    executors: int = 1,
    touched: float = TOUCHED,
    rate: float | None = None,
    as_of: datetime | None = None,
    show: Shows = SILENT,
) -> Estimate:
    """Estimate the erasure of some persons. No file with data is opened, and nothing is changed.

    executors: cores that work at once. touched: share of a place's files that one person is in, above 0 and up to 1.
    rate: MiB of files that one executor searches in a second; measured on this machine, if none is given. as_of: when
    the erasure would begin; now, if none is given.

    Raises:
        UsageError: a number that means nothing.
        ConfigError: the estate file cannot be read.
        EstateError: the estate file names places that are none, or a library of a catalog is missing.
    """
    _check(persons, executors, touched, rate)
    estate = settings.estate()
    if rate is None:
        from pii_tracer.app.cost_estimate.search_rate import search_rate

        show.stage("measuring how fast this machine searches")
    speed = rate * MIB if rate is not None else search_rate(persons)
    asked = Asked(persons, executors, touched, speed, estate.prices, as_of or moment(None))
    show.stage("listing what exists")
    return make_estimate(estate, list_estate(estate, settings.base, show.step), asked, measured=rate is None)


def _check(persons: int, executors: int, touched: float, rate: float | None) -> None:
    if persons < 1 or executors < 1:
        raise UsageError(
            "the numbers of persons and executors must be at least 1", todo="correct `--persons` or `--executors`"
        )
    if not 0 < touched <= 1:
        raise UsageError(
            "the share of files that hold a person must be above 0 and at most 1", todo="correct `--touched`"
        )
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise UsageError("the rate must be above 0, in MiB per second", todo="correct `--rate`")
