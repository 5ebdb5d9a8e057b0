"""What the metastore says of a transactional table, beside the files that lie in its folder."""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.catalogs.hive.client import Metastore
from pii_tracer.model.datasets import Column, Frozen
from pii_tracer.model.locations import is_hdfs

_ORC = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
_NO_MINIMUM = 2**63 - 1
_RECYCLES = "hive.repl.cm.enabled"
IN_PROPERTIES = "hive_acid.metastore"
"""The property of a table's state that has the notes."""


class Settled(Frozen):
    """Which transactions count, when the metastore was asked: those that it knew, and that are not open or aborted.

    write_ids_upto: the highest write id of the table. write_ids: those of open or aborted transactions, sorted.
    transactions_upto: the highest transaction. transactions: those that are open, or were aborted, sorted.
    """

    write_ids_upto: int
    write_ids: tuple[int, ...] = ()
    transactions_upto: int
    transactions: tuple[int, ...] = ()

    def counts(self, first: int, last: int) -> bool:
        """Whether all of some write ids do."""
        return last <= self.write_ids_upto and not any(first <= number <= last for number in self.write_ids)

    def is_over(self, transaction: int) -> bool:
        """Whether a transaction was committed."""
        return transaction <= self.transactions_upto and transaction not in self.transactions


class AcidNotes(Frozen):
    """catalog: its key in the estate file. columns: those of the files; partition_columns: of the names of folders.

    location: of its folder. partitions: their names (`day=1`), sorted. settled: which write ids count. recycles: files
    that the cleaner removes are kept elsewhere, for a replication.
    """

    catalog: str
    database: str
    table: str
    location: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...]
    partitions: tuple[str, ...] = ()
    settled: Settled
    recycles: bool = False

    @property
    def name(self) -> str:
        """The table's, as Hive's SQL has it."""
        return f"{_quoted(self.database)}.{_quoted(self.table)}"

    @property
    def schema_name(self) -> str:
        """The database's."""
        return _quoted(self.database)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def is_transactional(table: Any) -> bool:
    """Whether a table of the metastore's has rows that can be deleted by Hive: a full ACID one of ORC in HDFS."""
    own = {str(key).lower(): str(value) for key, value in (table.parameters or {}).items()}
    storage = table.sd
    return (
        own.get("transactional", "").lower() == "true"
        and own.get("transactional_properties", "default") == "default"
        and str(table.tableType) == "MANAGED_TABLE"
        and storage is not None
        and storage.inputFormat == _ORC
        and is_hdfs(str(storage.location or ""))
        and not storage.storedAsSubDirectories
    )


def notes_of(store: Metastore, catalog: str, table: Any) -> AcidNotes:
    """What the metastore says of one such table.

    Raises:
        Exception: it refuses, or does not answer.
    """
    database, name = str(table.dbName), str(table.tableName)
    names = store.ask("get_partition_names", database, name, -1) if table.partitionKeys else ()
    return AcidNotes(
        catalog=catalog,
        database=database,
        table=name,
        location=str(table.sd.location),
        columns=_columns(table.sd.cols),
        partition_columns=_columns(table.partitionKeys),
        partitions=tuple(sorted(map(str, names))),
        settled=settled(store, database, name),
        recycles=str(store.ask("get_config_value", _RECYCLES, "false")).lower() != "false",
    )


def _columns(found: Any) -> tuple[Column, ...]:
    return tuple(Column(name=str(one.name), type=str(one.type)) for one in found or ())


def settled(store: Metastore, database: str, table: str) -> Settled:
    """Which transactions count for readers of a table that begin now.

    Raises:
        Exception: the metastore refuses, or does not answer.
    """
    from hive_metastore.ttypes import GetValidWriteIdsRequest

    now = store.ask("get_open_txns")
    numbers, bits = sorted(now.open_txns or ()), bytes(now.abortedBits or b"")
    aborted = [txn for at, txn in enumerate(numbers) if at // 8 < len(bits) and bits[at // 8] >> (at % 8) & 1]
    still = [txn for txn in numbers if txn not in aborted]
    first = min(still, default=_NO_MINIMUM)
    lists = (",".join(map(str, some)) for some in (still, aborted))
    known = ":".join((str(now.txn_high_water_mark), str(first), *lists))
    asked = GetValidWriteIdsRequest(fullTableNames=[f"{database}.{table}"], validTxnList=known)
    (answer,) = store.ask("get_valid_write_ids", asked).tblValidWriteIds
    return Settled(
        write_ids_upto=int(answer.writeIdHighWaterMark),
        write_ids=tuple(sorted(map(int, answer.invalidWriteIds or ()))),
        transactions_upto=int(now.txn_high_water_mark),
        transactions=tuple(map(int, numbers)),
    )
