"""The estate file (`pii-tracer.yaml`), requests and policy as typed models. No credentials are ever read from them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError, model_validator

from pii_tracer.common.plurals import counted
from pii_tracer.config.backups import Backup, wrong_backups
from pii_tracer.config.batches import Batches
from pii_tracer.config.catalogs import Catalog, wrong_histories
from pii_tracer.config.formats import InstalledFormat
from pii_tracer.config.glacier_vaults import Vault, wrong_vaults
from pii_tracer.config.hdfs import NameNode, wrong_hdfs
from pii_tracer.config.kafka import KafkaCluster
from pii_tracer.config.keys import KeyTable, ParquetEncryption, wrong_keys
from pii_tracer.config.lakefs import LakefsServer, wrong_lakefs
from pii_tracer.config.laws import Ground, Law, double, laws_of
from pii_tracer.config.lease import LeasePlace, wrong_lease
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.maintenance_jobs import MaintenanceJob
from pii_tracer.config.monitoring.readiness import ReadinessSettings, wrong_readiness
from pii_tracer.config.passing_on.recipients import Recipient, wrong_recipients
from pii_tracer.config.proof import AttestationKey, DeletionLogSettings, TimestampAuthority
from pii_tracer.config.request_store import RequestStoreUrl
from pii_tracer.config.s3_inventory import InventoryReports
from pii_tracer.config.stores.object_stores import DeclaredStore, wrong_object_stores
from pii_tracer.config.strict_yaml import load_yaml
from pii_tracer.config.subjects import Subject, SubjectRef
from pii_tracer.config.time_windows import Windows
from pii_tracer.model.datasets import Currency, Frozen
from pii_tracer.model.errors import ConfigError
from pii_tracer.model.gap_kinds import NamedKind
from pii_tracer.model.legal_holds import Hold, contradiction
from pii_tracer.model.locations import WEB_ADDRESS, is_s3
from pii_tracer.model.timestamps import Moment


class Relocation(Frozen):
    """Lineage names data by `from`; on this machine it lies under `to` (relative to the estate file)."""

    from_: str = Field(alias="from")
    to: str


class Spark(Frozen):
    """Session settings. `profile` picks the tried set of versions; `conf` is added as it is.

    remote: address of a Spark Connect server (`sc://host:15002`) that is used in place of a Spark of our own.
    """

    profile: Literal["3.5", "4.1"] = "3.5"
    master: str = "local[2]"
    remote: str | None = Field(default=None, pattern=r"^sc://[^/;\s]+(/;?\S*)?$")
    conf: dict[str, str] = {}

    @property
    def is_cluster(self) -> bool:
        """Whether executors are other processes than this one's, which drives them."""
        return self.remote is None and not self.master.startswith("local")

    @model_validator(mode="after")
    def _one_engine(self) -> Spark:
        if self.remote and "master" in self.model_fields_set:
            raise ValueError("`remote` names a server, and the server has its own master; remove `master`")
        if self.remote and re.search(r"[;/](token|password)=", self.remote, re.IGNORECASE):
            raise ValueError("`remote` must not contain a credential; servers that need one are not supported")
        if self.remote and self.profile != "3.5":
            raise ValueError("`remote` works only with the profile 3.5; set `profile` to 3.5")
        return self


class S3(Frozen):
    """How S3 is reached. Credentials come from the environment, as boto3 finds them."""

    endpoint_url: str | None = Field(default=None, pattern=WEB_ADDRESS)
    region: str


class Archive(Frozen):
    """A prefix of a bucket that holds snapshots of a table, with the format of its objects.

    bypass_governance: why versions under GOVERNANCE retention are deleted all the same; an override of the plan.
    inventory: S3 Inventory reports, which planning then reads instead of listing the bucket.
    manifest: a JSON file of object key -> tables in it; an object that is not in it can hold anybody.
    delete_whole: why objects are deleted with everybody in them instead of being rewritten; an override of the plan.
    """

    name: str
    of: str
    bucket: str
    prefix: str
    format: InstalledFormat
    expires_after_days: int | None = None
    bypass_governance: str | None = Field(default=None, min_length=1)
    inventory: InventoryReports | None = None
    manifest: str | None = None
    delete_whole: str | None = Field(default=None, min_length=1)


def _overlap(archives: tuple[Archive, ...]) -> str | None:
    """Two archives that share objects: what one says of them (`delete_whole`) would be done to the other's."""
    for number, inner in enumerate(archives):
        for other in (*archives[:number], *archives[number + 1 :]):
            if inner.bucket == other.bucket and inner.prefix.startswith(other.prefix):
                return (
                    f"the archive `{other.name}` contains all of the archive `{inner.name}`: in the bucket"
                    f" {inner.bucket} the prefix `{inner.prefix}` begins with `{other.prefix}`. A prefix need not end"
                    " at a folder: end prefixes with `/`, and declare a place once"
                )
    return None


class Writer(Frozen):
    """A job that writes into the estate, and whether its owner stopped it for the erasure."""

    job: str
    stopped: bool = False


MOST_PRICE = 1e12
"""A larger price is a mistake, and sums of such would have no end."""


class Prices(Frozen):
    """Prices per unit, in `currency`. None is charged twice; none may be negative or without end."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    currency: Currency = "INR"
    archive_object: float = Field(default=0.0, ge=0, le=MOST_PRICE)
    restore_gb: float = Field(default=0.0, ge=0, le=MOST_PRICE)
    scanned_gb: float = Field(default=0.0, ge=0, le=MOST_PRICE)
    request_1000: float = Field(default=0.0, ge=0, le=MOST_PRICE)
    spark_hour: float = Field(default=0.0, ge=0, le=MOST_PRICE)
    storage_gb_month: float = Field(default=0.0, ge=0, le=MOST_PRICE)


class RetentionClasses(Frozen):
    """Days of time travel per class. `pii` and `derived` exist everywhere; `classes` adds own ones.

    tables: the class of each table, by its SQL name or its path from the estate file. floors: days below which a
    table's history must not be cut. partitions: of a table, by its partitions' folders (`country=DE`), the class of
    those that are kept longer than the table. pii_columns: column names that mean personal data wherever they are
    created.
    """

    pii_days: int = Field(default=7, ge=0)
    derived_days: int = Field(default=30, ge=0)
    classes: dict[str, Annotated[int, Field(ge=0)]] = {}
    tables: dict[str, str] = {}
    floors: dict[str, Annotated[int, Field(ge=0)]] = {}
    partitions: dict[str, dict[Annotated[str, Field(pattern=r"^[^/=]+=[^/]*(/[^/=]+=[^/]*)*$")], str]] = {}
    pii_columns: dict[str, str] = {}

    @model_validator(mode="after")
    def _known(self) -> RetentionClasses:
        days = self.days_of_classes()
        for name in self.classes:
            if name in ("pii", "derived"):
                raise ValueError(f"set the days of the class `{name}` with `{name}_days`, not under `classes`")
        for table, name in self.tables.items():
            if name not in days:
                raise ValueError(
                    f"{table} has the class `{name}`, which does not exist; use one of: {', '.join(sorted(days))}"
                )
            if self.floors.get(table, 0) > days[name]:
                raise ValueError(
                    f"{table} must keep its data for {self.floors[table]} days, but its class allows "
                    f"only {days[name]} days; correct one of them"
                )
        for table, kept in self.partitions.items():
            for folder, name in kept.items():
                if name not in days:
                    raise ValueError(
                        f"{folder} of {table} has the class `{name}`, which does not exist; declare it under `classes`"
                    )
        return self

    def days_of_classes(self) -> dict[str, int]:
        """Every class with its days."""
        return {"pii": self.pii_days, "derived": self.derived_days, **self.classes}


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
    backups: tuple[Backup, ...] = ()
    recipients: tuple[Recipient, ...] = ()
    vaults: tuple[Vault, ...] = ()
    hdfs: tuple[NameNode, ...] = ()
    object_stores: tuple[DeclaredStore, ...] = ()
    kafka: tuple[KafkaCluster, ...] = ()
    lakefs: tuple[LakefsServer, ...] = ()
    keys: tuple[KeyTable, ...] = ()
    parquet_encryption: ParquetEncryption | None = None
    writers: tuple[Writer, ...] = ()
    maintenance: tuple[MaintenanceJob, ...] = ()
    prices: Prices = Prices()
    retention: RetentionClasses = RetentionClasses()
    windows: Windows = Windows()
    timestamp_authority: TimestampAuthority | None = None
    deletion_log: DeletionLogSettings = DeletionLogSettings()
    attestation_key: AttestationKey | None = None
    holds: tuple[Hold, ...] = ()
    laws: tuple[Law, ...] = ()
    readiness: ReadinessSettings = ReadinessSettings()
    lease: LeasePlace | None = None
    request_store: RequestStoreUrl | None = None
    scan_ledger: bool = True
    column_shapes: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Estate:
        names = [subject.name for subject in self.subjects]
        if len(set(names)) != len(names):
            raise ValueError("two subjects have the same name; rename one")
        if not self.subjects:
            raise ValueError(
                "no subject is declared, so the planner cannot know who a person is; add one under `subjects`"
            )
        tables = [t.name for c in self.catalogs.values() for t in c.tables]
        if len(set(tables)) != len(tables):
            raise ValueError("two declared tables have the same name; rename one")
        hidden = [name for name in tables if name.count(".") == 1 and name.split(".")[0] in self.catalogs]
        if hidden:
            raise ValueError(
                f"the declared table {hidden[0]} has a schema with the name of a catalog, where Spark would look for "
                "the table; rename one of them"
            )
        locations = [t.location for c in self.catalogs.values() for t in c.tables]
        if len(set(locations)) != len(locations):
            raise ValueError("two declared tables have the same location; remove one, or correct its location")
        if self.s3 is None and self.archives:
            raise ValueError("archives in S3 are declared, but the section `s3` is missing; add it")
        if self.s3 is None and any(is_s3(place) for place in (*self.roots, *locations)):
            raise ValueError("roots or tables in S3 are declared, but the section `s3` is missing; add it")
        several = {subject.name for subject in self.subjects if subject.several_columns}
        if any(canary.subject in several for canary in self.readiness.canaries):
            raise ValueError("the key of a canary's subject must have one column, because a canary has one value")
        wrong = contradiction(self.holds) or wrong_keys(self.keys, set(names), several) or wrong_backups(self.backups)
        wrong = wrong or wrong_recipients(self.recipients, self.subjects, self.backups)
        wrong = wrong or double(self.laws) or wrong_hdfs(self.hdfs, (*self.roots, *locations))
        wrong = wrong or wrong_lakefs(self.lakefs) or wrong_vaults(self.vaults) or _overlap(self.archives)
        wrong = wrong or wrong_object_stores(self.object_stores) or wrong_histories(self.catalogs)
        wrong = wrong or wrong_lease(
            self.lease,
            s3=self.s3 is not None,
            name_nodes={name_node.root.name_node for name_node in self.hdfs},
            stores={store.store for store in self.object_stores},
        )
        wrong = wrong or wrong_readiness(self.readiness, set(names), laws_of(self.laws))
        if wrong:
            raise ValueError(wrong)
        if len({cluster.name for cluster in self.kafka}) != len(self.kafka):
            raise ValueError("two Kafka clusters have the same name; rename one")
        topics = [(cluster.bootstrap, topic.name) for cluster in self.kafka for topic in cluster.topics]
        if len(set(topics)) != len(topics):
            raise ValueError("a Kafka topic is declared twice; remove one")
        unknown = {p for c in self.kafka for t in c.topics for p in t.producers} - {w.job for w in self.writers}
        if unknown:
            raise ValueError(f"producers must be listed under `writers`; missing are: {', '.join(sorted(unknown))}")
        return self


REQUEST_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""What the id of a request looks like: harmless in paths, in SQL, and on a terminal."""


class Request(Frozen):
    """One erasure request. noticed: when the person was told of it, where the law wants that before the erasure.

    extended: when the person was informed that the law's longer time is taken, with the reasons.
    """

    id: str = Field(pattern=REQUEST_ID)
    law: str
    received: Moment
    subject: SubjectRef
    ground: Ground = Ground.REQUEST
    noticed: Moment | None = None
    extended: Moment | None = None


class Policy(Frozen):
    """Policy as data: what a plan must satisfy to be approved and applied. The rules are in `review.policy`.

    allow_late: a plan may end after the legal deadline; reviewers are told. For requests that are overdue already.
    max_waivers_per_person: gaps that one person may waive in one plan. unwaivable: kinds of gap that nobody may waive
    (docs/gaps.md).
    require_classification: no step that cannot be undone on a copy without a column of a known category.
    required_roles: roles that must be among the approvers in production. max_approval_hours: a year at most.
    max_persons: most persons that one plan may erase. batches: how the request store becomes plans.
    """

    version: Literal[1]
    min_slack_days: float = Field(default=0, allow_inf_nan=False)
    allow_late: bool = False
    max_cost: float | None = Field(default=None, allow_inf_nan=False)
    allow_immediate_retention: bool = False
    max_persons: int | None = Field(default=None, ge=1)
    batches: Batches | None = None
    max_waivers_per_person: int | None = Field(default=None, ge=0)
    unwaivable: tuple[NamedKind, ...] = ()
    require_classification: bool = False
    max_approval_hours: int = Field(default=72, ge=1, le=8760)
    production_approvers: int = Field(default=2, ge=1)
    required_roles: tuple[str, ...] = ()


M = TypeVar("M", Estate, Request, Policy)


def _load(path: Path, kind: type[M], what: str) -> M:
    data = load_yaml(path, what)
    if not isinstance(data, dict):
        raise ConfigError(
            f"the {what} file is empty or not a mapping", where=str(path), todo="write it as docs/estate-file.md shows"
        )
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_explain(error, what), where=str(path), todo="see docs/estate-file.md for the keys") from None


_LIST = "write a list, each entry behind `- ` or all in `[ ]`"
_IN_WORDS = {
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), _LIST),
    "extra_forbidden": "unknown key",
    "missing": "it is missing",
}
"""Pydantic's kinds of mistakes that its own words do not explain to who writes YAML."""


def _explain(error: ValidationError, what: str) -> str:
    lines = [f"the {what} file has {counted(error.error_count(), 'mistake')}:"]
    for item in error.errors(include_input=False, include_url=False):
        known = item["loc"][:-1] if item["type"] == "extra_forbidden" and what == "request" else item["loc"]
        path = ".".join(str(part) for part in known) or "(whole file)"
        lines.append(f"    {path}: {_IN_WORDS.get(item['type']) or item['msg'].removeprefix('Value error, ')}")
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
