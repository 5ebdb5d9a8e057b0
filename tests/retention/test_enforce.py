"""Which settings change and which stay, and the sweep's choice of tables, without an engine."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.estate_file import RetentionClasses
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.snapshot_expiry import SnapshotNode, retained
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.formats.retention_terms import DAY_MS, RefRetention
from pii_tracer.lake.inventory import RefKind
from pii_tracer.model.datasets import Format
from pii_tracer.retention.setting_changes import enforcement
from pii_tracer.retention.settings_check import Table, check_tables
from tests.retention.hoard import hold

TODAY = datetime(2026, 11, 21, tzinfo=timezone.utc)
NOW = int(TODAY.timestamp() * 1000)
TAG = RefRetention("q3", RefKind.TAG, 1)
MAIN = RefRetention("main", RefKind.BRANCH, 1, max_snapshot_age_ms=9 * DAY_MS, min_snapshots_to_keep=4)


def table(fmt: Format, properties: dict[str, str], *refs: RefRetention) -> Table:
    return Table(("a.t",), fmt, properties, refs, ("uid",), location="/w/t")


@given(
    days=st.integers(0, 400),
    floor=st.integers(0, 400),
    files=st.integers(0, 400),
    log=st.integers(0, 400),
)
def test_enforced_settings_pass_the_check_and_no_floor_is_undercut(days: int, floor: int, files: int, log: int) -> None:
    own = {
        "delta.deletedFileRetentionDuration": f"interval {files} days",
        "delta.logRetentionDuration": f"interval {log} days",
    }
    rules = RetentionClasses(classes={"own": max(days, floor)}, tables={"a.t": "own"}, floors={"a.t": floor})
    changes = enforcement(rules, (), [table(DELTA, own)], TODAY).changes
    after = own | {c.setting: c.new for c in changes}
    assert check_tables(rules, [table(DELTA, after)]) == ()
    assert all(int(value.split()[1]) >= floor for value in after.values())


def test_references_change_only_when_they_are_named() -> None:
    rules = RetentionClasses(tables={"a.t": "pii"})
    one = table(ICEBERG, {"write.metadata.delete-after-commit.enabled": "true"}, TAG, MAIN)
    without = enforcement(rules, (), [one], TODAY)
    assert {(c.setting, c.new) for c in without.changes} == {
        ("branch main: max-snapshot-age-ms", str(7 * DAY_MS)),
        ("branch main: min-snapshots-to-keep", "1"),
    }
    assert [k.setting for k in without.kept] == ["tag q3: max-ref-age-ms"]
    named = enforcement(rules, (), [one], TODAY, with_refs=True)
    assert ("tag q3: max-ref-age-ms", None, str(7 * DAY_MS)) in {(c.setting, c.old, c.new) for c in named.changes}
    assert named.kept == ()


def test_what_is_held_is_not_changed() -> None:
    rules = RetentionClasses(tables={"a.t": "pii"})
    made = enforcement(rules, (hold("a.t"),), [table(DELTA, {})], TODAY)
    assert made.changes == ()
    assert {k.reason for k in made.kept} == {"hold h1 (case 7) without an end"}


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (RetentionClasses(), "no retention class"),
        (RetentionClasses(tables={"a.t": "derived"}), "without personal data"),
    ],
)
def test_what_is_not_declared_is_not_changed(rules: RetentionClasses, reason: str) -> None:
    made = enforcement(rules, (), [table(DELTA, {})], TODAY)
    assert made.changes == ()
    assert all(reason in k.reason for k in made.kept)
    assert made.kept


def test_what_is_somebody_elses_to_change_stays_with_its_reason() -> None:
    rules = RetentionClasses(tables={"a.t": "pii"})
    off = {"gc.enabled": "false", "write.metadata.delete-after-commit.enabled": "true"}
    assert [k.setting for k in enforcement(rules, (), [table(ICEBERG, off)], TODAY).kept] == ["gc.enabled"]
    (hudi,) = enforcement(rules, (), [table(HUDI, {})], TODAY).kept
    assert "writing jobs" in hudi.reason


def _line(*ages: float) -> dict[int, SnapshotNode]:
    """Snapshots 1, 2, …, each the parent of the next, with their ages in days."""
    return {n: SnapshotNode(n, n - 1 or None, NOW - int(age * DAY_MS)) for n, age in enumerate(ages, 1)}


def _kept(snapshots: dict[int, SnapshotNode], *refs: RefRetention, **properties: str) -> set[int]:
    names = {k.replace("__", ".").replace("_", "-"): v for k, v in properties.items()}
    cutoff = NOW - 7 * DAY_MS
    return set(retained(snapshots, refs, names, cutoff, NOW)[0])


def test_expiry_as_iceberg_does_it() -> None:
    line = _line(40, 30, 20, 1)
    main = RefRetention("main", RefKind.BRANCH, 4)
    assert _kept(line, main) == {4}
    assert _kept(line, main, history__expire__min_snapshots_to_keep="3") == {2, 3, 4}
    assert _kept(_line(40, 30, 20, 10), main) == {4}
    assert _kept(line, main, RefRetention("t", RefKind.TAG, 1)) == {1, 4}
    assert _kept(line, main, RefRetention("t", RefKind.TAG, 1, max_ref_age_ms=39 * DAY_MS)) == {4}
    assert _kept(line, main, RefRetention("t", RefKind.TAG, 1), history__expire__max_ref_age_ms=str(DAY_MS)) == {4}
    branch = RefRetention("b", RefKind.BRANCH, 3, max_snapshot_age_ms=35 * DAY_MS)
    assert _kept(line, main, branch) == {2, 3, 4}
    stray = line | {9: SnapshotNode(9, 1, NOW - DAY_MS), 8: SnapshotNode(8, 1, NOW - 9 * DAY_MS)}
    assert _kept(stray, main) == {4, 9}


@given(st.lists(st.floats(0, 60), min_size=1, max_size=12), st.data())
def test_expiry_never_takes_what_is_younger_or_a_living_head(ages: list[float], data: st.DataObject) -> None:
    snapshots = _line(*sorted(ages, reverse=True))
    head, tagged = len(ages), data.draw(st.integers(1, len(ages)))
    keep = _kept(snapshots, RefRetention("main", RefKind.BRANCH, head), RefRetention("t", RefKind.TAG, tagged))
    assert {head, tagged} <= keep
    assert {n for n, s in snapshots.items() if s.at_ms >= NOW - 7 * DAY_MS} <= keep
    assert timedelta(0) <= timedelta(milliseconds=NOW - min(snapshots[n].at_ms for n in keep))
