"""What tables' own settings keep, and which class they are held to."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.formats.delta.retention import interval_days
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.formats.retention_terms import DAY_MS, RefRetention
from pii_tracer.lake.inventory import RefKind
from pii_tracer.model.datasets import Format
from pii_tracer.retention.retention_classes import (
    CLASS_PROPERTY,
    class_of,
    hold_on,
    unmatched_holds,
)
from pii_tracer.retention.settings_check import (
    Finding,
    FindingKind,
    Table,
    check_tables,
)
from tests.retention.hoard import hold

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
GOOD_DELTA = {"delta.deletedFileRetentionDuration": "interval 7 days", "delta.logRetentionDuration": "interval 1 week"}
GOOD_ICEBERG = {"write.metadata.delete-after-commit.enabled": "true"}


def found(rules: RetentionClasses, *tables: Table) -> list[tuple[FindingKind, str | None, float | None]]:
    return [(f.kind, f.setting, f.keeps) for f in check_tables(rules, tables)]


def table(fmt: Format, properties: dict[str, str], *refs: RefRetention, pii: tuple[str, ...] = ("uid",)) -> Table:
    return Table(("a.t",), fmt, properties, refs, pii)


CLASSED = RetentionClasses(tables={"a.t": "pii"})


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("interval 7 days", 7),
        ("INTERVAL 1 week 2 days", 9),
        ("168 hours", 7),
        ("interval 0 seconds", 0),
        ("interval 1 month", None),
        ("interval", None),
        ("7", None),
        ("interval -1 days", None),
    ],
)
def test_intervals_as_delta_writes_them(text: str, days: float | None) -> None:
    assert interval_days(text) == days


@given(st.integers(0, 5000), st.sampled_from(["hour", "day", "week"]))
def test_an_interval_is_too_long_exactly_when_its_hours_are(number: int, unit: str) -> None:
    hours = number * {"hour": 1, "day": 24, "week": 168}[unit]
    properties = GOOD_DELTA | {"delta.logRetentionDuration": f"interval {number} {unit}s"}
    assert bool(found(CLASSED, table(DELTA, properties))) is (hours > 7 * 24)


def test_delta_defaults_count_where_nothing_is_set() -> None:
    expected = [(FindingKind.TOO_LONG, "delta.logRetentionDuration", 30)]
    assert found(CLASSED, table(DELTA, {})) == expected
    assert found(CLASSED, table(DELTA, GOOD_DELTA)) == []
    broken = GOOD_DELTA | {"delta.logRetentionDuration": "soon"}
    assert found(CLASSED, table(DELTA, broken)) == [(FindingKind.TOO_LONG, "delta.logRetentionDuration", None)]


def test_iceberg_references_keep_for_ever_unless_they_say_otherwise() -> None:
    tag = RefRetention("q3", RefKind.TAG, 1)
    main = RefRetention("main", RefKind.BRANCH, 2)
    assert found(CLASSED, table(ICEBERG, GOOD_ICEBERG, main)) == []
    assert found(CLASSED, table(ICEBERG, GOOD_ICEBERG, main, tag)) == [
        (FindingKind.TOO_LONG, "tag q3: max-ref-age-ms", None)
    ]
    by_table = GOOD_ICEBERG | {"history.expire.max-ref-age-ms": str(7 * DAY_MS)}
    assert found(CLASSED, table(ICEBERG, by_table, tag)) == []
    own = RefRetention("q3", RefKind.TAG, 1, max_ref_age_ms=8 * DAY_MS)
    assert found(CLASSED, table(ICEBERG, by_table, own)) == [(FindingKind.TOO_LONG, "tag q3: max-ref-age-ms", 8)]
    branch = RefRetention("dev", RefKind.BRANCH, 1, DAY_MS, 9 * DAY_MS, 3)
    assert found(CLASSED, table(ICEBERG, GOOD_ICEBERG, branch)) == [
        (FindingKind.TOO_LONG, "branch dev: max-snapshot-age-ms", 9),
        (FindingKind.TOO_LONG, "branch dev: min-snapshots-to-keep", None),
    ]


@pytest.mark.parametrize(
    ("properties", "setting", "keeps"),
    [
        ({}, "write.metadata.delete-after-commit.enabled", None),
        (GOOD_ICEBERG | {"gc.enabled": "false"}, "gc.enabled", None),
        (
            GOOD_ICEBERG | {"history.expire.max-snapshot-age-ms": str(8 * DAY_MS)},
            "history.expire.max-snapshot-age-ms",
            8,
        ),
        (GOOD_ICEBERG | {"history.expire.max-snapshot-age-ms": "x"}, "history.expire.max-snapshot-age-ms", None),
        (GOOD_ICEBERG | {"history.expire.min-snapshots-to-keep": "2"}, "history.expire.min-snapshots-to-keep", None),
    ],
)
def test_iceberg_settings(properties: dict[str, str], setting: str, keeps: float | None) -> None:
    assert found(CLASSED, table(ICEBERG, properties)) == [(FindingKind.TOO_LONG, setting, keeps)]


def test_hudi_says_that_its_cleaner_is_not_stored_with_the_table() -> None:
    assert found(CLASSED, table(HUDI, {})) == [(FindingKind.NOT_STORED, "hoodie.clean.policy", None)]
    (note,) = check_tables(CLASSED, [table(HUDI, {}, pii=())])
    assert not note.violation
    by_hours = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "169"}
    assert [f[2] for f in found(CLASSED, table(HUDI, by_hours))] == [169 / 24]
    assert found(CLASSED, table(HUDI, by_hours | {"hoodie.clean.hours.retained": "168"})) == []
    by_commits = {"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS", "hoodie.cleaner.commits.retained": "1"}
    assert found(CLASSED, table(HUDI, by_commits)) == [(FindingKind.TOO_LONG, "hoodie.cleaner.policy", None)]


def test_bare_formats_have_no_history() -> None:
    assert format_of(Format.PARQUET).kept_by({}, ()) == ()
    assert check_tables(RetentionClasses(), [table(Format.PARQUET, {})]) == ()


def test_personal_data_needs_a_class_by_name() -> None:
    kinds = [f.kind for f in check_tables(RetentionClasses(), [table(DELTA, GOOD_DELTA)])]
    assert kinds == [FindingKind.UNCLASSIFIED]
    assert found(RetentionClasses(), table(DELTA, GOOD_DELTA, pii=())) == []
    assert found(RetentionClasses(), table(DELTA, GOOD_DELTA | {CLASS_PROPERTY: "pii"})) == []


def test_classes_that_contradict_each_other_or_do_not_exist() -> None:
    rules = RetentionClasses(tables={"a.t": "ledger"}, classes={"ledger": 180})
    assert class_of(rules, ("a.t",), {}, ("uid",)).days == 180
    both = class_of(rules, ("a.t",), {CLASS_PROPERTY: "pii"}, ("uid",))
    assert both.wrong
    assert both.days == 7
    missing = class_of(RetentionClasses(), ("a.t",), {CLASS_PROPERTY: "forever"}, ("uid",))
    assert missing.wrong
    assert not missing.explicit
    derived = class_of(RetentionClasses(tables={"a.t": "derived"}), ("a.t",), {}, ("uid",))
    assert derived.wrong
    assert derived.days == 7


def test_a_table_is_known_by_any_of_its_names() -> None:
    rules = RetentionClasses(tables={"Prod.T": "pii"})
    assert class_of(rules, ("spark_catalog.prod.t", "w/t"), {}, ()).explicit
    assert class_of(RetentionClasses(tables={"w/t/": "pii"}), ("spark_catalog.prod.t", "w/t"), {}, ()).explicit
    assert not class_of(RetentionClasses(tables={"prod.tt": "pii"}), ("prod.t",), {}, ()).explicit


def test_names_that_no_table_has_are_told() -> None:
    rules = RetentionClasses(tables={"a.gone": "pii"}, floors={"a.x": 3})
    assert [(f.table, f.kind) for f in check_tables(rules, [table(DELTA, GOOD_DELTA, pii=())])] == [
        ("a.gone", FindingKind.UNKNOWN_TABLE),
        ("a.x", FindingKind.UNKNOWN_TABLE),
    ]


def test_holds_end_at_their_time() -> None:
    holds = (hold("a.t", id="old", until="2026-11-20T23:00:00Z"), hold("a.t", id="new", until="2026-11-21T23:00:00Z"))
    assert hold_on(holds, ("a.t",), NOW) == "hold new (case 7) until 2026-11-21"
    assert hold_on(holds, ("a.t",), datetime(2026, 11, 22, tzinfo=timezone.utc)) is None
    assert hold_on(holds, ("a.u",), NOW) is None


def test_a_hold_ends_at_its_moment_whatever_day_it_is_elsewhere() -> None:
    holds = (hold("a.t", until="2026-11-22T23:59:59-08:00"),)
    assert hold_on(holds, ("a.t",), datetime(2026, 11, 23, 3, tzinfo=timezone.utc))
    assert hold_on(holds, ("a.t",), datetime(2026, 11, 23, 8, tzinfo=timezone.utc)) is None


@pytest.mark.parametrize("name", ["lake/ledger", "/e/house/lake/ledger/", "./lake/ledger", "DB.Ledger", "house/lake"])
def test_a_hold_names_a_table_as_plans_understand_it(name: str) -> None:
    assert hold_on((hold(name),), ("spark_catalog.db.ledger", "house/lake/ledger", "/e/house/lake/ledger"), NOW)
    assert (
        hold_on((hold(name),), ("spark_catalog.db.ledgers", "house/lakes/ledger", "/e/house/lakes/ledger"), NOW) is None
    )


def test_a_hold_on_a_folder_holds_the_tables_below_it() -> None:
    holds = (hold("warehouse/disputes"),)
    assert hold_on(holds, ("x", "warehouse/disputes/t"), NOW)
    assert hold_on(holds, ("x", "warehouse/disputes_old"), NOW) is None


def test_a_hold_that_names_nothing_is_told_while_it_lasts() -> None:
    holds = (hold("a.t", id="a"), hold("b.typo", id="b"), hold("b.gone", id="c", until="2026-11-20T00:00:00Z"))
    assert unmatched_holds(holds, [("a.t", "w/t")], NOW) == (("b", "b.typo"),)


@pytest.mark.parametrize(
    "rules",
    [
        {"tables": {"a.t": "ledger"}},
        {"classes": {"pii": 3}},
        {"tables": {"a.t": "pii"}, "floors": {"a.t": 8}},
        {"classes": {"x": -1}},
    ],
)
def test_rules_that_cannot_hold_are_refused(rules: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RetentionClasses.model_validate(rules)


def test_a_floor_lengthens_the_class_of_an_unnamed_table_and_is_told() -> None:
    rules = RetentionClasses(floors={"a.t": 365})
    wanted = class_of(rules, ("a.t",), {CLASS_PROPERTY: "pii"}, ("uid",))
    assert wanted.days == 365
    assert wanted.wrong


def test_findings_are_sorted_and_serialise() -> None:
    findings = check_tables(RetentionClasses(), [table(DELTA, {})])
    assert [Finding.model_validate_json(f.model_dump_json()) for f in findings] == list(findings)
