"""A first estate file as YAML, with a comment for each guess. No value of a person is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import yaml

from pii_tracer.common.plurals import counted
from reports.escape import visible

MOST_OTHERS = 8
"""Further candidates for a source that a comment names."""


class GuessLike(Protocol):
    """What a column may hold (`planners.draft.column_guesses.Guess`)."""

    @property
    def category(self) -> str: ...
    @property
    def by(self) -> str: ...


class FurtherLike(Protocol):
    """A table with the key (`planners.draft.subject_guesses.FurtherTable`)."""

    @property
    def table(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def shared(self) -> float | None: ...
    @property
    def by_lineage(self) -> bool: ...


class MentionedLike(Protocol):
    """A column with the source's values (`planners.draft.subject_guesses.Mentioned`)."""

    @property
    def table(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def of(self) -> str | None: ...
    @property
    def shared(self) -> float: ...
    @property
    def in_list(self) -> bool: ...


class SubjectLike(Protocol):
    """A table that may know persons (`planners.draft.subject_guesses.SubjectGuess`)."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def unique(self) -> bool: ...
    @property
    def identifiers(self) -> Mapping[str, GuessLike]: ...
    @property
    def further(self) -> Sequence[FurtherLike]: ...
    @property
    def mentioned(self) -> Sequence[MentionedLike]: ...
    @property
    def record_keys(self) -> Sequence[str]: ...
    @property
    def others(self) -> Mapping[str, GuessLike]: ...


class ArchiveLike(Protocol):
    """A prefix with old copies of a table (`planners.draft.archive_guesses.ArchiveGuess`)."""

    @property
    def name(self) -> str: ...
    @property
    def of(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def format(self) -> Any: ...
    @property
    def why(self) -> str: ...


class PlacesLike(Protocol):
    """What was named (`pii_tracer.app.estate_draft.given_places.Places`)."""

    @property
    def catalogs(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def roots(self) -> Sequence[str]: ...
    @property
    def s3(self) -> Mapping[str, str] | None: ...
    @property
    def lineage(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def hdfs(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def object_stores(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def relocations(self) -> Sequence[Mapping[str, str]]: ...


class DraftLike(Protocol):
    """What was found (`pii_tracer.app.estate_draft.draft_estate_file.Draft`)."""

    @property
    def estate(self) -> str: ...
    @property
    def places(self) -> PlacesLike: ...
    @property
    def declared(self) -> Sequence[tuple[str, Any, str]]: ...
    @property
    def texts(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def warehouses(self) -> Mapping[str, Mapping[str, str]]: ...
    @property
    def dev_roots(self) -> Sequence[str]: ...
    @property
    def subjects(self) -> Sequence[SubjectLike]: ...
    @property
    def tables(self) -> int: ...
    @property
    def unread(self) -> Sequence[str]: ...
    @property
    def gaps(self) -> Sequence[str]: ...
    @property
    def placed(self) -> Sequence[str]: ...
    @property
    def uncompiled(self) -> Sequence[str]: ...
    @property
    def deletable(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def archives(self) -> Sequence[ArchiveLike]: ...
    @property
    def writers(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...


def estate_yaml(draft: DraftLike) -> str:
    """The whole file."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: DraftLike) -> Iterator[str]:
    yield "# Made by `pii-tracer init --discover`. Each line with `guess:` is for you to confirm or correct."
    yield "# What every key means: docs/estate-file.md. Then: `pii-tracer doctor`, `pii-tracer inventory`."
    yield "version: 1"
    yield f"estate: {_word(draft.estate)}"
    yield "environment: local            # local | production (production needs signed approvals)"
    yield from _catalogs(draft)
    placed = f"   # guess: where the catalogs' tables lie ({_names(draft.placed)})" if draft.placed else ""
    yield f"roots: {_word(list(draft.places.roots))}{placed}"
    if draft.dev_roots:
        yield f"dev_roots: {_word(list(draft.dev_roots))}   # guess: by the folders' names"
    if draft.places.relocations:
        told = "# guess: lineage names data by `from`, and it lies here below `to`"
        yield f"relocations: {_word([dict(way) for way in draft.places.relocations])}   {told}"
    if draft.places.s3:
        yield f"s3: {_word(dict(draft.places.s3))}"
    if draft.places.hdfs:
        yield from _hdfs(draft)
    if draft.places.object_stores:
        yield from _object_stores(draft.places.object_stores)
    yield "# days of old versions that tables keep, with personal data and without. A plan waits for them: they have to"
    yield "# end before the deadline"
    yield "retention: {pii_days: 7, derived_days: 14}"
    yield from (f"# look at this: {visible(note)}" for note in draft.notes)
    yield "# Lineage says which tables were made of which, and so which copies to erase. Without it each table below"
    yield "# with the key is by itself, and hashed or renamed keys are gaps: docs/lineage-sources.md"
    yield "lineage:"
    for kind, what in (("events", "OpenLineage events: NDJSON files or folders"), ("sql", "SQL files or folders")):
        yield f"  {kind}: {_word(list(draft.places.lineage.get(kind, ())))}   # {what}"
    if draft.places.lineage.get("sql"):
        yield "  # dialect: athena   # the SQL files are read as Spark's: if they are of another engine, take this in"
        yield "  # and name it: athena, trino, bigquery, snowflake, redshift, postgres …"
    if projects := draft.places.lineage.get("dbt"):
        yield f"  dbt: {_word(list(projects))}"
    yield "subjects:"
    yield from _subjects(draft.subjects)
    if draft.archives:
        yield "archives:                     # guess: old copies of tables, by the buckets and the folders' names"
    for archive in draft.archives:
        entry = {name: getattr(archive, name) for name in ("name", "of", "bucket", "prefix")}
        yield f"  - {_word({**entry, 'format': str(archive.format)})}   # {visible(archive.why)}"
    if draft.writers:
        yield "# the jobs that the lineage names. When they are stopped for an erasure, take in the line. Without it,"
        yield "# tables in S3 can be gaps (`unguarded_commits`), and time travel cannot be ended at once:"
        yield f"# writers: {_word([{'job': job, 'stopped': True} for job in draft.writers])}"
    yield "# archives, backups, kafka, vaults, holds: name what you have (docs/estate-file.md); they are not looked for"


def _hdfs(draft: DraftLike) -> Iterator[str]:
    yield "hdfs:"
    for name, entry in draft.places.hdfs.items():
        yield f"  - namenode: {_word(name)}"
        yield f"    webhdfs: {_word(entry['webhdfs'])}   # guess, unless you gave it. List every NameNode"
        if "user" in entry:
            yield f"    user: {_word(entry['user'])}   # guess, unless you gave it. A superuser sees every trash"
        yield from (f"    {key}: {_word(entry[key])}" for key in ("kerberos", "ca") if key in entry)
        paths = draft.deletable.get(name, ())
        if paths:
            yield "    # snapshots and left-overs of jobs are gaps until their owners agree to lose them with everybody"
            yield "    # in them. Take in what was agreed, with who agreed and why:"
            yield "    # deletable:"
        for path in paths[:MOST_OTHERS]:
            yield f"    #   - {_word({'path': path, 'owner': 'NAME', 'reason': 'WHY'})}"
        if len(paths) > MOST_OTHERS:
            yield f"    #   and {counted(len(paths) - MOST_OTHERS, 'further path')}: `pii-tracer inventory` names them"


def _object_stores(stores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "object_stores:                # guess: each folder of files is a dataset. Add folders that come later"
    for entry in stores.values():
        first, *others = (name for name in entry if name != "places")
        yield f"  - {first}: {_word(entry[first])}"
        yield from (f"    {name}: {_word(entry[name])}" for name in others)
        yield "    places:"
        yield from (f"      - {_word(dict(place))}" for place in entry["places"])


def _catalogs(draft: DraftLike) -> Iterator[str]:
    yield "catalogs:"
    for name, catalog in draft.places.catalogs.items():
        yield f"  {_word(name)}: {_word(dict(catalog))}   # guess: the name Spark SQL knows it by"
    for name, entry in draft.warehouses.items():
        yield f"  {_word(name)}: {_word(dict(entry))}   # guess: the name, and that jobs name tables by folder"
    yield "  spark_catalog:"
    yield "    type: declared"
    if not draft.declared:
        yield "    tables: []"
        return
    yield "    tables:                   # guess: names, by the folders; write them as your jobs do"
    for table, kind, place in draft.declared:
        text = draft.texts.get(table, {})
        told = "   # guess: options and columns, by the first lines of its files" if "options" in text else ""
        told = "   # guess: the encoding, as its files are not UTF-8" if "encoding" in text else told
        yield f"      - {_word({'name': table, 'format': str(kind), 'location': place, **text})}{told}"


def _subjects(subjects: Sequence[SubjectLike]) -> Iterator[str]:
    if not subjects:
        yield "  # no table has a column like a person's key beside an identifying one: write who the persons are"
        yield "  - name: person"
        yield "    source: catalog.schema.table"
        yield "    key: person_id"
        return
    first, *others = subjects
    yield f"  - name: {_word(first.name)}"
    yield f"    source: {_word(first.source)}   # guess: the table that knows the persons first"
    told = "each value is in it once" if first.unique else "by its name"
    yield f"    key: {_word(first.key)}   # guess: {told}. A request names a person by it"
    yield "    identifiers:              # guess: columns that identify a person by themselves"
    for column, guess in first.identifiers.items():
        yield f"      - {_word({'column': column, 'category': guess.category})}   # by its {guess.by}"
    for column, guess in first.others.items():
        line = _word({"column": column, "category": guess.category})
        yield f"      # - {line}   # guess: take it in only if it is the same person's"
    if first.record_keys:
        yield "    # columns by which other tables may name a person's row. Take in those that no two persons share:"
        yield f"    # record_keys: {_word(list(first.record_keys))}   # guess: each value is in the source once"
    taken = any(not table.by_lineage and (table.shared is None or table.shared > 0) for table in first.further)
    if first.further or first.mentioned:
        mark = "" if taken else "# "  # a list of comments alone is no list
        yield f"    {mark}tables:                   # guess: further tables with the same key, by the column's name"
    for table in first.further:
        line = f"- {_word({'table': table.table, 'key': table.key})}"
        if table.by_lineage:
            told = "Load the lineage of its job: a plan finds its rows by lineage alone"
            yield f"      # {line}   # {_part(table)}. {told}"
        elif table.shared is None or table.shared > 0:
            yield f"      {line}   # {_part(table)}"
        else:
            yield f"      # {line}   # none of its keys is in the source: other persons, or another number"
    if first.mentioned:
        yield "      # the source's values, under another name: take in what no job of the lineage makes."
        yield "      # two lines of one table are two persons in a row: docs/where-is-the-key.md, `other_keys`"
    for item in first.mentioned:
        entry = {"table": item.table, "key": item.column} | ({"of": item.of} if item.of else {})
        entry |= {"row": "keep"} if item.in_list else {}
        only = f"; only if you take in {visible(item.of)} above" if item.of and item.of in first.others else ""
        yield f"      # - {_word(entry)}   # {item.shared:.0%} of its values are in the source{only}"
    if others:
        yield "  # other tables that may know persons:"
    for other in others[:MOST_OTHERS]:
        columns = ", ".join(other.identifiers)
        yield f"  #   {visible(other.source)}: key {visible(other.key)}, identifiers {visible(columns)}"


def _part(table: FurtherLike) -> str:
    return "not looked into" if table.shared is None else f"{table.shared:.0%} of its keys are in the source"


def _word(value: object) -> str:
    """As YAML on one line. Names come from outside: whatever stands in them, they stay what they are, and no more."""
    text = yaml.dump(value, Dumper=_OneLine, default_flow_style=True, width=10**9, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


class _OneLine(yaml.SafeDumper):
    """Text that cannot be seen is written with escapes."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if value.isprintable() else '"')


_OneLine.add_representer(str, _text)


def _names(places: Sequence[str]) -> str:
    return ", ".join(map(visible, places))


def draft_lines(draft: DraftLike) -> Iterator[str]:
    """What was found, for the terminal."""
    yield f"found {counted(draft.tables, 'table or folder', 'tables and folders')} with data"
    if draft.subjects:
        first = draft.subjects[0]
        yield (
            f"guess: persons are known from {visible(first.source)} by {visible(first.key)};"
            f" {counted(len(first.identifiers), 'identifying column')},"
            f" {counted(len(first.further), 'further table')} with the key"
        )
    else:
        yield "no table looks like a source of persons: write `subjects` by hand"
    if draft.placed:
        yield f"guess: added to `roots`, because tables or partitions of the catalogs are there: {_names(draft.placed)}"
    yield from map(visible, draft.notes)
    if draft.unread:
        tables = counted(len(draft.unread), "table was", "tables were")
        yield f"{tables} judged only by the names of columns"
    for project in draft.uncompiled:
        yield f"{visible(project)} has no target/manifest.json yet: run `dbt compile` there before `pii-tracer harvest`"
    if draft.gaps:
        yield f"the draft has gaps: {', '.join(draft.gaps)}. Run `pii-tracer inventory` to see their places"
