"""State of a Hudi table, from its timeline, properties and file slices (hudi-rs, no JVM).

Timeline and names: https://hudi.apache.org/docs/timeline and the technical specification of table versions 6 to 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pii_tracer.common.native_panics import panics_as_errors
from pii_tracer.common.parallel_map import several
from pii_tracer.common.plurals import counted
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.hudi.properties import HUDI_BOOTSTRAPPED
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.inventory import Ref, RefKind, TableState
from pii_tracer.lake.read_result import Found, gap
from pii_tracer.lake.spark_types import arrow_type
from pii_tracer.lake.stores.any_place import AnyPlace, opened
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import Column, DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import location_of

if TYPE_CHECKING:
    from hudi import HudiTable

# completed instants: `<requested>[_<completed>].<action>`; requested and inflight ones have a further suffix
_INSTANT = re.compile(r"^(\d{14,17})(?:_\d{14,17})?\.(commit|deltacommit|replacecommit|savepoint)$")
TABLE_VERSION = 9
_COMMITS = ("commit", "deltacommit", "replacecommit")


def is_hudi(folder: Path) -> bool:
    """Whether a folder is a Hudi table: it has a `.hoodie`."""
    return (folder / ".hoodie").is_dir()


NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def load_hudi(
    location: Path | S3Path, options: Mapping[str, str] = NO_OPTIONS, *, shown: str | None = None
) -> HudiTable:
    """The table in a folder, read-only. options: how hudi-rs reaches S3 (`EstatePaths.s3_options`). shown: its place in
    errors, where the folder is a copy.

    Raises:
        EstateError: missing properties, no completed commit, a version that hudi-rs does not read, or a name that it
            would take for another one.
    """
    from hudi import HudiTableBuilder

    if isinstance(location, S3Path):
        if re.search(r"[%?#]", str(location)):
            raise EstateError(
                "the Hudi reader confuses folders with `%`, `?` or `#` in their names",
                where=str(location),
                todo="rename the folder, because only Spark can read this name",
            )
        builder = HudiTableBuilder.from_base_uri(str(location)).with_storage_options(dict(options))
    else:
        builder = HudiTableBuilder.from_base_uri(location.as_uri())
    try:
        with panics_as_errors():
            return builder.build()
    except Exception as error:
        raise EstateError(
            f"the Hudi table cannot be read: {type(error).__name__}",
            where=shown or str(location),
            todo="repair the table's `.hoodie` folder, because the tool cannot read the table without it",
        ) from None


def hudi_properties(location: AnyPlace) -> dict[str, str]:
    """`.hoodie/hoodie.properties` (Java properties: `#` comments, `\\:` and `\\=` escaped)."""
    lines = (location / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): re.sub(r"\\(.)", r"\1", value.strip()) for key, value in pairs}


def timeline_of(location: AnyPlace) -> AnyPlace:
    """The folder of the active timeline: of its own since table version 8."""
    hoodie = location / ".hoodie"
    return hoodie / "timeline" if (hoodie / "timeline").is_dir() else hoodie


def instants(location: AnyPlace) -> list[tuple[str, str]]:
    """Completed instants of the active timeline as (requested time, action), oldest first."""
    return sorted((m[1], m[2]) for p in timeline_of(location).iterdir() if (m := _INSTANT.match(p.name)))


def slice_files(table: HudiTable, location: AnyPlace) -> tuple[list[AnyPlace], list[AnyPlace]]:
    """Base files and log files of the current file slices, sorted. table: as `load_hudi` gave it for the location."""
    try:
        with panics_as_errors():
            slices = table.get_file_slices()
    except Exception as error:
        raise EstateError(
            f"the Hudi file slices cannot be listed: {type(error).__name__}",
            where=str(location),
            todo="read the table with Spark, because hudi-rs does not support one of its features",
        ) from None
    base: list[AnyPlace] = []
    logs: list[AnyPlace] = []
    for part in slices:
        if name := part.base_file_relative_path():
            base.append(location / name)
        logs.extend(location / log for log in part.log_files_relative_paths())
    return sorted(base, key=str), sorted(logs, key=str)


def hudi_state(location: Path, paths: EstatePaths) -> Found:
    """The table in a folder of this machine.

    Raises:
        EstateError: properties, timeline or file slices cannot be read.
    """
    names = paths.dataset_of(location), paths.table_at(location)
    found = state_of(load_hudi(location), location, *names, _size)
    return Found(found.state, found.gaps, _bootstrapped(found.state.properties))


def state_of(
    table: HudiTable,
    location: AnyPlace,
    dataset: DatasetId,
    name: str | None,
    size_of: Callable[[str], int | None],
) -> Found:
    """A table that was opened. size_of: of a file by its full name, None where there is none.

    Raises:
        EstateError: properties, timeline or file slices cannot be read.
    """
    try:
        properties = hudi_properties(location)
        timeline = instants(location)
        with panics_as_errors():
            schema = table.get_schema()
    except Exception as error:
        raise EstateError(
            f"the Hudi table's schema or timeline cannot be read: {type(error).__name__}",
            where=str(location),
            todo="repair the table's `.hoodie` folder",
        ) from None
    base, logs = slice_files(table, location)
    commits = [time for time, action in timeline if action in _COMMITS]
    sizes = {path: size_of(str(path)) for path in (*base, *logs)}
    missing = [path for path, size in sizes.items() if size is None]
    state = TableState(
        dataset=dataset,
        table=name,
        location=str(location),
        format=HUDI,
        snapshot=commits[-1] if commits else "none",
        columns=tuple(
            Column(name=f.name, type=arrow_type(f.type)) for f in schema if not f.name.startswith("_hoodie_")
        ),
        partition_columns=tuple(p for p in properties.get("hoodie.table.partition.fields", "").split(",") if p),
        format_version=int(properties.get("hoodie.table.version", "0")) or None,
        write_mode="mor" if table.is_mor else "cow",
        rows=_rows(base) if not logs and not missing else None,
        files=len(base) + len(logs),
        bytes=sum(size or 0 for size in sizes.values()),
        refs=tuple(Ref(name=t, kind=RefKind.SAVEPOINT, at=t) for t, action in timeline if action == "savepoint"),
        versions=max(len(commits), 1),
        properties=dict(sorted(properties.items())),
        row_key=tuple(p.strip() for p in properties.get("hoodie.table.recordkey.fields", "").split(",") if p.strip()),
    )
    reason = f"{counted(len(missing), 'file')} of the current file slices cannot be found"
    gaps = [gap(dataset, GapKind.MISSING_FILES, reason, str(missing[0]), missing)] if missing else []
    if (state.format_version or 0) > TABLE_VERSION:
        reason = f"the table has version {state.format_version}, but the newest supported version is {TABLE_VERSION}"
        gaps.append(gap(dataset, GapKind.UNKNOWN_VERSION, reason, str(location / ".hoodie" / "hoodie.properties")))
    return Found(state, tuple(gaps))


def _size(file: str) -> int | None:
    path = Path(file)
    return path.stat().st_size if path.exists() else None


def _bootstrapped(properties: Mapping[str, str]) -> frozenset[Path]:
    """Files that the table reads beside its own: bootstrapped by metadata alone, it has the keys of rows and reads the
    rest of each from the place that it was made of, by position (https://hudi.apache.org/docs/migration_guide).
    """
    try:
        base = location_of(properties.get(HUDI_BOOTSTRAPPED, ""))
    except EstateError:  # in a store that nobody here reads; the plan has the table blocked
        return frozenset()
    if not isinstance(base, Path) or not base.is_absolute():
        return frozenset()
    return frozenset(p.resolve() for p in base.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))


def _rows(base: Sequence[AnyPlace]) -> int | None:
    if any(path.suffix != ".parquet" for path in base):
        return None
    return sum(several(_rows_of, base))


def _rows_of(path: AnyPlace) -> int:
    import pyarrow.parquet as pq

    with opened(path) as stream:
        return int(pq.read_metadata(stream).num_rows)
