"""One OpenLineage event to what it says, without when it was said: https://openlineage.io/docs/spec/object-model.

Many runs of a job say the same; a `Part` is hashable, so that it is kept once. Identities are plain tuples here
(namespace, name), because millions of them pass by. Structure is read leniently: what is missing is missing, facets
that nobody knows are left alone, and what has another type than the specification says is a reason in `wrong`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pii_tracer.common.plurals import counted
from pii_tracer.lineage.graph.edges import DIRECT_SUBTYPES, Subtype
from pii_tracer.lineage.sql.statements.filled_columns import in_path

Id = tuple[str, str]
"""namespace and name of a dataset"""

Field = tuple[str, str, str]
"""namespace, name and column"""

Wrong = Callable[[str], None]

_PER_FIELD = frozenset({*DIRECT_SUBTYPES, Subtype.CONDITIONAL, Subtype.WINDOW})
_SUBTYPES = {s.value: s for s in Subtype}
_SPARK_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
"""The listener's names of types, in DDL's words."""


class Part(NamedTuple):
    """What one event says of its job.

    told: outputs whose columns it tells. edges: source, target, subtype, masking. members: source, dataset, subtype.
    sql: text and dialect (empty where none is given). code: languages of source code that is not SQL.
    engines: what ran it, in small letters. checked: inputs whose values were only checked. kept: outputs into which no
    rows come: they are dropped, emptied, renamed or altered. grown: outputs into which it says that rows came. placed:
    outputs that it names by a partition's folder. made: columns of which it says that they come from none.
    unread: what the producer says it could not read itself. wrong: what could not be read, and of which dataset.
    """

    job: str
    inputs: frozenset[Id]
    outputs: frozenset[Id]
    told: frozenset[Id]
    edges: frozenset[tuple[Field, Field, Subtype, bool]]
    members: frozenset[tuple[Field, Id, Subtype]]
    sql: frozenset[tuple[str, str]]
    code: frozenset[str]
    engines: frozenset[str]
    checked: frozenset[Id]
    kept: frozenset[Id]
    grown: frozenset[Id]
    placed: frozenset[Id]
    made: frozenset[Field]
    unread: frozenset[str]
    wrong: frozenset[tuple[Id | None, str]]


class Dataset(NamedTuple):
    """A dataset as an event names it, with the facets that are not None."""

    id: Id
    facets: Mapping[str, Any]
    rows: int | None = None
    """How many came in, where the event says it."""


class Draft:
    """A part while it is read. idle: its job brings no rows into anything.

    defines: the table that it makes by a command without a query, as its name has it; empty where that names none.
    """

    def __init__(self, job: str) -> None:
        self.job = job
        self.defines: str | None = None
        self.idle = False
        self.inputs: set[Id] = set()
        self.outputs: set[Id] = set()
        self.told: set[Id] = set()
        self.edges: set[tuple[Field, Field, Subtype, bool]] = set()
        self.members: set[tuple[Field, Id, Subtype]] = set()
        self.sql: set[tuple[str, str]] = set()
        self.code: set[str] = set()
        self.engines: set[str] = set()
        self.checked: set[Id] = set()
        self.kept: set[Id] = set()
        self.grown: set[Id] = set()
        self.placed: set[Id] = set()
        self.made: set[Field] = set()
        self.unread: set[str] = set()
        self.wrong: set[tuple[Id | None, str]] = set()

    def part(self) -> Part:
        """The part, hashable."""
        f = frozenset
        return Part(
            self.job, f(self.inputs), f(self.outputs), f(self.told), f(self.edges), f(self.members), f(self.sql),
            f(self.code), f(self.engines), f(self.checked), f(self.kept), f(self.grown), f(self.placed),
            f(self.made), f(self.unread), f(self.wrong),
        )  # fmt: skip

    def of(self, dataset: Id | None) -> Wrong:
        """A notebook for what is wrong about a dataset, or about the whole event."""
        return lambda reason: self.wrong.add((dataset, reason))


def not_an_event(value: Any) -> str:
    """Why a JSON value is neither a RunEvent, a JobEvent nor a DatasetEvent; empty when it is one."""
    if not isinstance(value, dict):
        return "it is not an OpenLineage event"
    job, run, dataset = value.get("job"), value.get("run"), value.get("dataset")
    if isinstance(dataset, dict) and job is None and run is None:
        return "" if isinstance(dataset.get("name"), str) and dataset["name"] else "the event names no dataset"
    return "" if isinstance(job, dict) and isinstance(run, dict | None) else "it is not an OpenLineage event"


def a_map(value: Any, what: str, wrong: Wrong) -> Mapping[str, Any]:
    """An object; anything else but null is told and empty."""
    if isinstance(value, dict):
        return value
    if value is not None:
        wrong(f"`{what}` is not an object")
    return {}


def a_list(value: Any, what: str, wrong: Wrong) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; anything else is told and left out."""
    if value is None:
        return
    if not isinstance(value, list):
        wrong(f"`{what}` is not a list")
        return
    for item in value:
        if isinstance(item, dict):
            yield item
        else:
            wrong(f"an entry of `{what}` is not an object")


def a_text(value: Any, what: str, wrong: Wrong) -> str:
    """A text; anything else but null is told and empty."""
    if isinstance(value, str):
        return value
    if value is not None:
        wrong(f"`{what}` is not a text")
    return ""


def facets_of(item: Mapping[str, Any], wrong: Wrong) -> Mapping[str, Any]:
    """The facets of a job, run or dataset that are there and were not deleted (`_deleted`)."""
    facets = a_map(item.get("facets"), "facets", wrong)
    found = {}
    for name, facet in facets.items():
        if name not in _READ:
            continue
        content = a_map(facet, f"facets.{name}", wrong)
        if content and content.get("_deleted") is not True:
            found[name] = content
    return found


_READ = frozenset(
    ["schema", "columnLineage", "lineage", "symlinks", "lifecycleStateChange", "sql", "sourceCode", "dataSource",
     "catalog", "storage", "version", "tags", "parent", "jobType", "processing_engine", "extractionError"]
)  # fmt: skip

_CHECKS = ("dataQualityAssertions", "greatExpectations_assertions")
"""Facets of an input whose values a job compared with what is expected."""


def job_name(job: Mapping[str, Any], wrong: Wrong) -> str:
    """`namespace:name`, or what there is of it."""
    return ":".join(t for k in ("namespace", "name") if (t := a_text(job.get(k), f"job.{k}", wrong)))


def code_of(facets: Mapping[str, Any], draft: Draft) -> None:
    """The SQL of a job, from its `sql` facet or its source code; other languages are only named."""
    wrong = draft.of(None)
    query = a_text(facets.get("sql", {}).get("query"), "sql.query", wrong)
    if query.strip():
        draft.sql.add((query, a_text(facets["sql"].get("dialect"), "sql.dialect", wrong)))
    source = facets.get("sourceCode", {})
    text = a_text(source.get("sourceCode"), "sourceCode.sourceCode", wrong)
    language = a_text(source.get("language"), "sourceCode.language", wrong)
    if text.strip() and "sql" in language.lower():
        draft.sql.add((text, ""))
    elif text.strip() or language:
        draft.code.add(language or "unknown")


def engine_of(facets: Mapping[str, Any], draft: Draft) -> None:
    """What ran a job, from the facets of the job or of its run: `jobType` and `processing_engine`."""
    wrong = draft.of(None)
    for facet, key in (("jobType", "integration"), ("processing_engine", "name")):
        engine = a_text(facets.get(facet, {}).get(key), f"{facet}.{key}", wrong).strip().lower()
        if engine:
            draft.engines.add(engine)


_CHECKERS = frozenset({"greatexpectations", "soda", "sodacore", "sodasql"})
"""Tools that do nothing but check, in small letters without marks."""


def unread_of(facets: Mapping[str, Any], draft: Draft) -> None:
    """The run facet `extractionError`: its producer could not read some of the run's statements, and left them out.

    https://openlineage.io/docs/spec/facets/run-facets/extraction_error. Its messages can hold values, so they are not
    kept.
    """
    facet = facets.get("extractionError")
    if facet is not None:
        failed, total = facet.get("failedTasks"), facet.get("totalTasks")
        if failed == 0 and not facet.get("errors"):
            return
        known = isinstance(failed, int) and isinstance(total, int)
        draft.unread.add(f"{failed} of its {counted(total, 'statement')}" if known else "some of its statements")


def _is_check(event: Mapping[str, Any]) -> bool:
    """Whether an event comes from what only checks data, by its job's type, its producer or its own facets.

    Airflow's events have facets of data quality only where an operator checks. Other jobs check what they read and
    then write it.
    """
    job, run = (value if isinstance(value := event.get(key), dict) else {} for key in ("job", "run"))
    of_job, of_run = (value if isinstance(value := one.get("facets"), dict) else {} for one in (job, run))
    kind = value if isinstance(value := of_job.get("jobType"), dict) else {}
    integration, type_ = (str(kind.get(key, "")).lower() for key in ("integration", "jobType"))
    producer = str(event.get("producer", "")).lower().replace("-", "").replace("_", "")
    if "sql" in of_job and integration != "airflow":
        return integration == "dbt" and type_ == "test"
    tool = integration.replace("_", "") in _CHECKERS or any(f"/{name}" in producer for name in _CHECKERS)
    return tool or integration == "airflow" or type_ == "test" or "great_expectations_meta" in of_run


def is_checked(item: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether an event, of what only checks data, says of an input that its values were checked."""
    return _is_check(event) and any(
        isinstance(item.get(k), dict) and not item[k].keys().isdisjoint(_CHECKS) for k in ("facets", "inputFacets")
    )


def dataset_of(item: Mapping[str, Any], what: str, draft: Draft) -> Dataset | None:
    """A dataset with its facets; one without a name is told."""
    id_ = _id(item, what, draft.of(None))
    return Dataset(id_, facets_of(item, draft.of(id_)), _rows(item)) if id_ else None


def _rows(item: Mapping[str, Any]) -> int | None:
    """https://openlineage.io/docs/spec/facets/dataset-facets/output-dataset-facets/output_statistics"""
    found: Any = item
    for name in ("outputFacets", "outputStatistics", "rowCount"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, int) else None


def _id(value: Mapping[str, Any], what: str, wrong: Wrong) -> Id | None:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        wrong(f"{what} has no name")
        return None
    return a_text(value.get("namespace"), f"{what}.namespace", wrong), name


def schema_of(facets: Mapping[str, Any], wrong: Wrong) -> tuple[tuple[str, str], ...]:
    """Names and types of columns, of the `schema` facet."""
    columns = []
    for item in a_list(facets.get("schema", {}).get("fields"), "schema.fields", wrong):
        name = a_text(item.get("name"), "schema.fields.name", wrong)
        if name:
            columns.append((name, _type(item, wrong)))
    return tuple(columns)


def _type(item: Mapping[str, Any], wrong: Wrong, depth: int = 0) -> str:
    """The DDL type; structs are listed as fields in the facet."""
    kind = a_text(item.get("type"), "schema.fields.type", wrong)
    kind = _SPARK_TYPES.get(kind.lower(), kind)
    if kind.lower() != "struct" or depth > 50:
        return kind
    inner = list(a_list(item.get("fields"), "schema.fields.fields", wrong))
    return "struct<" + ",".join(f"{f.get('name')}:{_type(f, wrong, depth + 1)}" for f in inner) + ">" if inner else kind


def columns_told(dataset: Dataset, draft: Draft) -> None:
    """The `columnLineage` facet: https://openlineage.io/docs/spec/facets/dataset-facets/column_lineage_facet."""
    wrong = draft.of(dataset.id)
    if dataset.rows:
        draft.grown.add(dataset.id)
    if parts := {(*dataset.id, column) for column, _ in in_path(f"/{dataset.id[1]}")}:
        draft.placed.add(dataset.id)
        draft.made |= parts
    facet = dataset.facets.get("columnLineage", {})
    for column, entry in a_map(facet.get("fields"), "columnLineage.fields", wrong).items():
        if _unnamed(column, wrong):
            continue
        draft.told.add(dataset.id)
        entry = a_map(entry, "columnLineage.fields entry", wrong)
        old = a_text(entry.get("transformationType"), "transformationType", wrong).upper()
        sources = list(a_list(entry.get("inputFields"), "inputFields", wrong))
        for source in sources:
            _edge(source, old, (*dataset.id, column), draft, wrong)
        if not sources:
            draft.made.add((*dataset.id, column))
    for source in a_list(facet.get("dataset"), "columnLineage.dataset", wrong):
        _member(source, dataset.id, draft, wrong)


def lineage_told(target: Id, entry: Mapping[str, Any], draft: Draft) -> None:
    """An entry of the `lineage` facets (explicit lineage of datasets and jobs); sources that are jobs hold no data."""
    wrong = draft.of(target)
    draft.outputs.add(target)
    for source in _sources(entry.get("inputs"), "lineage.inputs", wrong):
        id_ = _id(source, "a source of `lineage`", wrong)
        if id_:
            draft.inputs.add(id_)
            if source.get("field") is not None:
                _member(source, target, draft, wrong)
    for column, told in a_map(entry.get("fields"), "lineage.fields", wrong).items():
        if _unnamed(column, wrong):
            continue
        draft.told.add(target)
        for source in _sources(a_map(told, "lineage.fields entry", wrong).get("inputs"), "inputs", wrong):
            _edge(source, "", (*target, column), draft, wrong)


def lineage_read(entry: Mapping[str, Any], draft: Draft) -> None:
    """An entry of which the job itself is the target: data ends in it."""
    wrong = draft.of(None)
    for source in _sources(entry.get("inputs"), "lineage.inputs", wrong):
        id_ = _id(source, "a source of `lineage`", wrong)
        if id_:
            draft.inputs.add(id_)


def _unnamed(column: str, wrong: Wrong) -> bool:
    """Whether a name stands for any column: which ones, nobody knows."""
    if column == "*":
        wrong("a column is named `*`: name each column")
    return column == "*"


def _sources(value: Any, what: str, wrong: Wrong) -> Iterator[Mapping[str, Any]]:
    return (s for s in a_list(value, what, wrong) if s.get("type", "DATASET") == "DATASET")


def _field(source: Mapping[str, Any], wrong: Wrong) -> Field | None:
    id_ = _id(source, "an input field", wrong)
    column = a_text(source.get("field"), "inputFields.field", wrong)
    if id_ and column:
        return None if _unnamed(column, wrong) else (*id_, column)
    wrong("an input field is not given with dataset and column")
    return None


def _changes(source: Mapping[str, Any], wrong: Wrong) -> Iterator[tuple[Subtype | None, bool, bool]]:
    """Subtype where it is known, whether it is indirect, masking.

    Type and subtype can contradict each other. Values are then taken to go over, whichever of the two says so.
    """
    for change in a_list(source.get("transformations"), "transformations", wrong):
        name = a_text(change.get("subtype"), "transformations.subtype", wrong).upper()
        kind = a_text(change.get("type"), "transformations.type", wrong).upper()
        subtype = _SUBTYPES.get(name)
        if kind == "DIRECT" and subtype not in DIRECT_SUBTYPES:
            subtype = Subtype.TRANSFORMATION
        yield subtype, kind == "INDIRECT", change.get("masking") is True


def _member(source: Mapping[str, Any], target: Id, draft: Draft, wrong: Wrong) -> None:
    """A column that decides about the whole dataset; in which way is not always told, FILTER covers the rest.

    Spark tells a GROUP BY of an expression as the expression (DIRECT, TRANSFORMATION): no value goes over by it.
    """
    origin = _field(source, wrong)
    if origin is not None:
        found = {subtype or Subtype.FILTER for subtype, _, _ in _changes(source, wrong)} or {Subtype.FILTER}
        if Subtype.IDENTITY in found:
            wrong("a column's values are copied into the dataset, but the event does not show into which column")
        draft.members |= {(origin, target, subtype) for subtype in found}


def _edge(source: Mapping[str, Any], old: str, target: Field, draft: Draft, wrong: Wrong) -> None:
    origin = _field(source, wrong)
    if origin is None:
        return
    changes = list(_changes(source, wrong))
    if not changes:  # facets before version 1.1 say it once for all inputs, or not at all
        plain = Subtype.IDENTITY if old == "IDENTITY" else Subtype.TRANSFORMATION
        changes = [(plain, False, old == "MASKED")]
    for subtype, indirect, masking in changes:
        kind = subtype or (Subtype.CONDITIONAL if indirect else Subtype.TRANSFORMATION)
        if masking and kind is Subtype.IDENTITY:  # a value that is hidden is not the same one, whatever it is called
            kind = Subtype.TRANSFORMATION
        if kind in _PER_FIELD:
            draft.edges.add((origin, target, kind, masking))
        else:
            draft.members.add((origin, (target[0], target[1]), kind))
