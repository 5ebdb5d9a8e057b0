"""The estate file's `kafka`: clusters, their topics, and how the records of each are encoded."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.datasets import Frozen, Said


class RecordFormat(StrEnum):
    """How the bytes of a Kafka record's key or value are encoded."""

    STRING = "string"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class RecordPart(Frozen):
    """The key or the value of a topic's records, and where in it columns of the table `of` stand.

    column: the whole text is this column (string). fields: dotted path of a member (not of strings) -> column.
    other: members whose numbers are something else (a merchant), so that the same short digits are no find.
    framed: a schema registry's bytes come first. schema_file: writer's schema of Avro and Protobuf without them.
    message: full name of the type in a Protobuf `schema_file`. schema_ids: schema id -> file, for framed Avro and
    Protobuf; ids that are missing here are asked of the cluster's registry.
    """

    format: RecordFormat
    column: str | None = None
    fields: dict[str, str] = {}
    other: tuple[str, ...] = ()
    framed: bool = False
    schema_file: str | None = None
    message: str | None = None
    schema_ids: dict[int, str] = {}

    @model_validator(mode="after")
    def _fits(self) -> RecordPart:
        with_schema = self.format in (RecordFormat.AVRO, RecordFormat.PROTOBUF)
        if with_schema and self.framed is bool(self.schema_file):
            raise ValueError(f"{self.format.value} needs either `framed` or one `schema_file`")
        if not with_schema and (self.schema_file or self.schema_ids):
            raise ValueError(
                "schemas apply only to the formats avro and protobuf; remove the schema, or correct `format`"
            )
        if bool(self.message) is not (self.format is RecordFormat.PROTOBUF and not self.framed):
            raise ValueError(
                "`message` applies only to protobuf with a `schema_file`, because framed records name "
                "their own type; remove `message`"
            )
        if self.column and self.format is not RecordFormat.STRING:
            raise ValueError(
                "`column` applies only to the format `string`; for other formats, name the members in `fields`"
            )
        if (self.fields or self.other) and self.format is RecordFormat.STRING:
            raise ValueError("the format `string` has no members; use `column` instead of `fields`")
        return self

    def places(self) -> dict[tuple[str, ...], str]:
        """Path of members (empty: the whole text) -> column."""
        whole: dict[tuple[str, ...], str] = {(): self.column} if self.column else {}
        return whole | {tuple(path.split(".")): column for path, column in self.fields.items()}


class Prefix(Frozen):
    """That a topic's oldest records may go, everybody's, when the person's cannot go alone.

    read_by: consumer groups that must have read them before. reason: why nobody else needs them then; an override of
    the plan.
    """

    read_by: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    reason: Said


class Topic(Frozen):
    """A topic that carries rows of the table `of`. key: None when no record has one; with it, records may be without
    one where the topic is not compacted.

    producers: the jobs (see `writers`) that write to it; a rewrite needs them named and stopped, and consumers too.
    prefix: where it is declared, the partitions with the person are emptied instead, up to when the step runs.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")
    of: str
    key: RecordPart | None = None
    value: RecordPart
    producers: tuple[str, ...] = ()
    prefix: Prefix | None = None


class KafkaCluster(Frozen):
    """A Kafka cluster. Credentials stand only in `properties_file` (librdkafka's `name=value` lines), never here.

    registry_url: schema registry; its credentials come from `PII_TRACER_REGISTRY_AUTH` (user:password).
    """

    name: str
    bootstrap: str
    properties_file: str | None = None
    registry_url: str | None = Field(default=None, pattern=r"^https?://[^@\s]+$")
    topics: tuple[Topic, ...] = ()
