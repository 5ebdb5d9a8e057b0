"""The estimate itself: sums, what is waited for, what is not known, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.laws import laws_of
from pii_tracer.config.time_windows import weekly
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.listing.listed_place import Listing
from pii_tracer.model.datasets import Format
from pii_tracer.model.estimate import Estimate, Unknown, Wait
from planners.estimate.arithmetic import FILE_SECONDS, MIB, Asked, Sums, sum_up

_MOST_DAYS = 36_500
"""Never beyond what a calendar has."""


def make_estimate(estate: Estate, listing: Listing, asked: Asked, *, measured: bool) -> Estimate:
    """Estimate an erasure from a stream of places. measured: the rate was measured on this machine."""
    sums = sum_up(listing, asked)
    unknown = tuple(Unknown(where=one.where, reason=one.reason) for one in dict.fromkeys(listing.not_listed))
    return Estimate(
        estate=estate.estate,
        at=asked.at,
        persons=asked.persons,
        executors=asked.executors,
        touched=asked.touched,
        touched_by_all=round(asked.touched_by_all, 6),
        rate_mib_s=round(asked.rate / MIB, 1),
        measured=measured,
        currency=estate.prices.currency,
        at_least=bool(unknown),
        places=sums.places,
        files=sums.files,
        bytes=sums.bytes,
        total=sums.total.frozen(),
        steps=sums.steps,
        dearest=sums.dearest,
        waits=tuple(sorted(_waits(estate, sums, asked.at), key=lambda wait: (wait.until, wait.reason))),
        not_known=unknown,
        assumptions=tuple(_assumptions(asked)),
    )


def _waits(estate: Estate, sums: Sums, at: datetime) -> Iterator[Wait]:
    """Dates, as if everything else were done at once."""

    def later(reason: str, **length: float) -> Wait:
        return Wait(reason=reason, until=at + min(timedelta(**length), timedelta(days=_MOST_DAYS)))

    days = estate.retention.pii_days
    if days and any(format_of(Format(name)).keeps_history for name in sums.formats):
        yield later(f"tables keep old versions for {counted(days, 'day')} (`retention.pii_days`)", days=days)
    if sums.soft_delete_seconds:
        yield later("object stores keep soft-deleted bytes", seconds=sums.soft_delete_seconds)
    if sums.cold:
        yield later(
            f"{counted(sums.cold, 'archived object is', 'archived objects are')} restored",
            hours=estate.windows.restore_hours,
        )
    if sums.locked_until is not None and sums.locked_until > at:
        yield Wait(reason="object locks in S3 end", until=sums.locked_until)
    for backup in estate.backups:
        yield later(f"the owner of the backup {backup.name} acts", days=backup.due_days)
    if estate.windows.weekly:
        opens = min(weekly(text).opening(at, timedelta()) for text in estate.windows.weekly)
        yield Wait(reason="the next weekly window opens", until=opens)
    wanted = estate.readiness.laws
    for name, law in laws_of(estate.laws).items():
        notice = law.at(at).notice
        if notice is not None and (not wanted or name in wanted):
            grounds = " or ".join(ground.value for ground in notice.grounds)
            yield later(f"{name}: persons get a notice before an erasure because of {grounds}", hours=notice.hours)


def _assumptions(asked: Asked) -> Iterator[str]:
    yield f"expected: one person is in {asked.touched:.4g} of every place's files, at least in the largest one"
    yield (
        f"{asked.touched_by_all:.4g} of the files contain any of"
        f" {counted(asked.persons, 'person')}, independent of each other"
    )
    yield "low: the search finds no person. high: every file contains the persons, old versions and metadata included"
    yield (
        "every table and folder may contain the persons: a plan leaves out tables and folders in which its search "
        "finds none of them"
    )
    rate, more = f"{asked.rate / MIB:,.1f}", f"{FILE_SECONDS * 1000:g}"
    yield f"one executor searches {rate} MiB of files a second, and takes {more} ms more for each file"
    yield (
        "the time of steps is as in plans: a fixed time for each, and a second for 50 MB; copies are treated one "
        "after the other"
    )
    yield "wall time is a lower bound: executors share the files of one step or search, and no file is divided"
    yield (
        "an hour of an executor's work costs `spark_hour`; idle executors cost nothing; steps cost as much as in plans"
    )
    yield "each copy is verified by decoding all its files again, without the savings of the scan ledger"
    yield "replicas of buckets, unfinished uploads, HDFS snapshots and trash, and rebuilds are not counted"
