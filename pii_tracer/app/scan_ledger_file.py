"""Where the scan ledger of an estate lies, and who searches with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from pii_tracer.app.settings import Settings
from pii_tracer.config.estate_file import Estate
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.search_workers import Searchers

NAME = "scan-ledger.sqlite"


def ledger_of(settings: Settings, estate: Estate, warn: Callable[[str], None]) -> ScanLedger | None:
    """The ledger in the state folder; None where the estate file turns it off.

    Raises:
        PlanError: the estate key is missing or readable by others.
    """
    if not estate.scan_ledger:
        return None
    secret, file = settings.key().scan_ledger, settings.state / NAME
    return ScanLedger(file, secret, lambda: datetime.now(timezone.utc), warn, with_shapes=estate.column_shapes)


def searchers_with_ledger(settings: Settings, estate: Estate, warn: Callable[[str], None]) -> Searchers:
    """Who searches the files, here or in Spark as the estate file says, and leaves out what the ledger knows.

    Raises:
        PlanError: as `ledger_of`.
    """
    from executors.engine.spark_session import open_session
    from pii_tracer.verify.cluster_byte_search import searchers_of

    inner = searchers_of(estate.spark, lambda: open_session(estate, settings.base), warn)
    return LedgerSearchers(ledger_of(settings, estate, warn), inner)
