"""The deletion log as a Delta or Iceberg table, for those who query it beside their other tables.

SQLite holds the log; the table gets the rows that it lacks, by their number. So a crash between the two is mended by
the next run, and no row comes twice. A table that is ahead of the log, or has holes, is refused: one of them changed.
When the log was pruned the table is made anew, so that the old rows' files are gone.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from pathlib import Path

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.log_table_rows import LogRows

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def fill_table(log: DeletionLog, estate: str, kind: DeletionLogKind) -> Path:
    """Bring the table beside the log up to date; where it (SQLite: the log itself) is.

    Raises:
        ProofError: table and log do not agree, or the table cannot be read or written.
    """
    if kind is DeletionLogKind.SQLITE:
        return log.path
    folder = log.path.with_suffix(f".{kind.value}") / _folder_name(estate)
    rows = LogRows.of(log)
    try:
        importlib.import_module(f"pii_tracer.proof.formats.{kind.value}.log_table").fill(folder, rows)
    except ImportError:
        title = format_of(Format(kind.value)).title
        raise ProofError(
            f"{title} tables need a catalog that is not installed",
            todo=f"run `pip install 'pii-tracer[{kind.value}-log]'`",
        ) from None
    except ProofError:
        raise
    except Exception as error:  # the libraries' errors have no common root below this one
        raise ProofError(
            f"the deletion log's table cannot be written: {type(error).__name__}",
            where=str(folder),
            todo="repair or move the table; the log is complete, and the next run fills a new table from the log",
        ) from None
    return folder


def _folder_name(estate: str) -> str:
    """An estate's name where it is harmless in paths and URIs, else a hash of it."""
    return estate if _PLAIN.fullmatch(estate) else "estate-" + hashlib.sha256(estate.encode()).hexdigest()[:16]
