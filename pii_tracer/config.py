"""The estate file (`pii-tracer.yaml`), requests and policy as typed models. No credentials are ever read from them."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import Field, ValidationError, model_validator

from pii_tracer.enums import StrEnum
from pii_tracer.errors import ConfigError
from pii_tracer.model import Format, Frozen


class CatalogType(StrEnum):
    """Catalogs that discovery can read and Spark sessions are set up with."""

    ICEBERG_HADOOP = "iceberg-hadoop"
    DECLARED = "declared"


class DeclaredTable(Frozen):
    """A table that has a name in the session catalog and lives at a path."""

    name: str
    format: Format
    location: str


class Catalog(Frozen):
    """A Spark catalog. `iceberg-hadoop` needs `warehouse`; `declared` lists its tables (names in spark_catalog)."""

    type: CatalogType
    warehouse: str | None = None
    tables: tuple[DeclaredTable, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Catalog:
        if self.type is CatalogType.ICEBERG_HADOOP and not self.warehouse:
            raise ValueError("an iceberg-hadoop catalog needs `warehouse`")
        if self.type is CatalogType.DECLARED and self.warehouse:
            raise ValueError("a declared catalog lists `tables` and has no `warehouse`")
        return self


class Relocation(Frozen):
    """Lineage names data by `from`; on this machine it lies under `to` (relative to the estate file)."""

    from_: str = Field(alias="from")
    to: str


class Spark(Frozen):
    """Session settings. `profile` picks the tried set of versions; `conf` is added as it is."""

    profile: Literal["3.5"] = "3.5"
    master: str = "local[2]"
    conf: dict[str, str] = {}


class LineageSources(Frozen):
    """Where lineage is harvested from: NDJSON files or folders of events, SQL files or folders."""

    events: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()
    dialect: str = "spark"


class Identifier(Frozen):
    """A column that identifies a person by itself, with its data category (`national_id`, `phone`, `email`…)."""

    column: str
    category: str


class Subject(Frozen):
    """Where a kind of person is known from.

    source: the table that holds key and identifiers together.
    key: the column a request names the person by; record_keys: columns unique to one row of one person (bridges).
    """

    name: str
    source: str
    key: str
    key_category: str = "account_id"
    identifiers: tuple[Identifier, ...] = ()
    record_keys: tuple[str, ...] = ()


class S3(Frozen):
    """How S3 is reached. Credentials come from the environment, as boto3 finds them."""

    endpoint_url: str | None = None
    region: str


class Archive(Frozen):
    """A prefix of a bucket that holds snapshots of a table, with the format of its objects."""

    name: str
    of: str
    bucket: str
    prefix: str
    format: Format
    expires_after_days: int | None = None


class Writer(Frozen):
    """A job that writes into the estate, and whether its owner stopped it for the erasure."""

    job: str
    stopped: bool = False


class Prices(Frozen):
    """Prices per unit, in `currency`. None is charged twice; none may be negative."""

    currency: str = "INR"
    archive_object: float = Field(default=0.0, ge=0)
    restore_gb: float = Field(default=0.0, ge=0)
    scanned_gb: float = Field(default=0.0, ge=0)
    request_1000: float = Field(default=0.0, ge=0)
    spark_hour: float = Field(default=0.0, ge=0)


class RetentionClasses(Frozen):
    """Days of time travel that the default policy keeps for tables with PII and for derived tables."""

    pii_days: int = Field(default=7, ge=0)
    derived_days: int = Field(default=30, ge=0)


class Windows(Frozen):
    """Waits and windows, in UTC.

    restore_hours: what the service promises, and plans reckon with; restore_check_minutes: how often a waiting run
    looks whether it is there already. archive_weekday and archive_start_hour: when archive batches run.
    """

    restore_hours: int = Field(default=12, ge=0)
    restore_check_minutes: float = Field(default=30, gt=0)
    archive_weekday: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] | None = None
    archive_start_hour: int = Field(default=0, ge=0, le=23)


class Estate(Frozen):
    """The whole estate file. Paths are relative to the file's folder unless absolute or a URI."""

    version: Literal[1]
    estate: str
    environment: Literal["local", "production"]
    spark: Spark = Spark()
    catalogs: dict[str, Catalog]
    roots: tuple[str, ...]
    relocations: tuple[Relocation, ...] = ()
    lineage: LineageSources
    subjects: tuple[Subject, ...]
    anonymisers: tuple[str, ...] = ()
    dev_roots: tuple[str, ...] = ()
    s3: S3 | None = None
    archives: tuple[Archive, ...] = ()
    writers: tuple[Writer, ...] = ()
    prices: Prices = Prices()
    retention: RetentionClasses = RetentionClasses()
    windows: Windows = Windows()

    @model_validator(mode="after")
    def _consistent(self) -> Estate:
        names = [subject.name for subject in self.subjects]
        if len(set(names)) != len(names):
            raise ValueError("two subjects have one name")
        if not self.subjects:
            raise ValueError("no subject is declared: the planner would not know who a person is")
        tables = [t.name for c in self.catalogs.values() for t in c.tables]
        if len(set(tables)) != len(tables):
            raise ValueError("two declared tables have one name")
        locations = [t.location for c in self.catalogs.values() for t in c.tables]
        if len(set(locations)) != len(locations):
            raise ValueError("two declared tables have one location")
        if self.archives and self.s3 is None:
            raise ValueError("archives are declared and `s3` is missing")
        return self


class SubjectRef(Frozen):
    """Whom a request is about: the kind of subject, and the value of its key."""

    type: str
    key: str = Field(min_length=1)


class Request(Frozen):
    """One erasure request. `received` needs a time zone."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    law: str
    received: datetime
    subject: SubjectRef

    @model_validator(mode="after")
    def _zoned(self) -> Request:
        if self.received.tzinfo is None:
            raise ValueError("`received` needs a time zone, e.g. 2026-11-19T10:00:00+05:30")
        return self


class Policy(Frozen):
    """Policy as data: what a plan must satisfy to be approved and applied."""

    version: Literal[1]
    min_slack_days: float = 0
    max_cost: float | None = None
    allow_immediate_retention: bool = False
    max_approval_hours: int = Field(default=72, ge=1)
    production_approvers: int = Field(default=2, ge=1)


M = TypeVar("M", Estate, Request, Policy)


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys (YAML 1.2, section 3.2.1.3: keys are unique)."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise ConfigError(
                    f"the key `{key}` stands twice",
                    where=f"{key_node.start_mark.name}, line {key_node.start_mark.line + 1}",
                    todo="keep one of the two",
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _load(path: Path, kind: type[M], what: str) -> M:
    try:
        with path.open(encoding="utf-8") as stream:
            data = yaml.load(stream, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise ConfigError(
            f"the {what} file is missing", where=str(path), todo="name the right path, or run `pii-tracer init`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the {what} file cannot be read: {error}", where=str(path), todo="check the path and its permissions"
        ) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(
            f"the {what} file is not YAML: {error.problem}", where=f"{path}, line {line}", todo="mend that line"
        ) from None
    if not isinstance(data, dict):
        raise ConfigError(f"the {what} file is empty or not a mapping", where=str(path), todo="see docs/estate-file.md")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_explain(error, what), where=str(path), todo="see docs/estate-file.md for the keys") from None


def _explain(error: ValidationError, what: str) -> str:
    lines = [f"the {what} file has {error.error_count()} mistake(s):"]
    for item in error.errors(include_input=False, include_url=False):
        path = ".".join(str(part) for part in item["loc"]) or "(whole file)"
        lines.append(f"    {path}: {item['msg']}")
    return "\n".join(lines)


def load_estate(path: Path) -> Estate:
    """Read an estate file.

    Raises:
        ConfigError: missing, not YAML, unknown keys, contradictions; names the path of every wrong key.
    """
    return _load(path, Estate, "estate")


def load_request(path: Path) -> Request:
    """Read an erasure request. Raises `ConfigError` as `load_estate` does."""
    return _load(path, Request, "request")


def load_policy(path: Path) -> Policy:
    """Read a policy file. Raises `ConfigError` as `load_estate` does."""
    return _load(path, Policy, "policy")


def file_digest(path: Path) -> str:
    """`sha256:…` of a file's bytes."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
