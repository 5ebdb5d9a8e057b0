"""A hold on some columns: the plan masks the rest, or keeps the whole copy and says why. Nothing in between."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA_CLEAN_LOG, DELTA_MASK_ROWS, DELTA_PURGE, DELTA_VACUUM
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_MASK_ROWS, ICEBERG_REWRITE_FILES
from pii_tracer.lake.inventory import NessieTable, Ref, RefKind
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Column, Format, Strategy
from pii_tracer.model.plan import Copy, ErasurePlan
from tests.planners.smalllake import FAR, Lake, archive, copy, hold, kinds, strategies, touched
from tests.planners.stores.test_backups import DUMP

COLUMNS = tuple(Column(name=n, type="bigint") for n in ("uid", "amount", "note"))
END = datetime.fromisoformat(FAR)


def lake(**state: Any) -> Lake:
    """Two copies; `a` has two columns more than its key."""
    return Lake(states={"a": {"columns": COLUMNS, **state}})


def of(*columns: str, **changes: Any) -> dict[str, Any]:
    return hold("prod.a", columns=list(columns), **changes)


def masked(plan: ErasurePlan, name: str = "a") -> Copy:
    found = copy(plan, name)
    assert found.strategy is Strategy.MASK_COLUMNS
    assert found.mask is not None
    return found


# --- what is not held becomes NULL


def test_what_is_not_held_becomes_null_in_rows_that_stay() -> None:
    plan = lake().plan(of("uid", "AMOUNT"))
    found = masked(plan)
    assert found.mask.columns == ("note",)
    assert [(c.name, c.holds) for c in found.mask.held] == [("uid", ("H1",)), ("amount", ("H1",))]
    assert found.mask.found_by == ()
    assert found.match is not None
    steps = [s for s in plan.steps if s.copy_ == "c-prod.a"]
    assert [s.action for s in steps] == [
        DELTA_MASK_ROWS,
        DELTA_PURGE,
        DELTA_VACUUM,
        DELTA_CLEAN_LOG,
        Action.VERIFY_COPY,
    ]
    assert steps[0].parameters["columns"] == ["note"]
    assert (plan.complete, plan.applyable) == (True, True)
    assert plan.totals.exempt == 1
    assert plan.totals.recheck_on == END
    assert [(h.id, h.copies) for h in plan.holds] == [("H1", ("c-prod.a",))]
    assert "kept: uid, amount (PMLA 2002, s. 12, until 2031-03-30)" in found.reason
    assert "note become NULL" in found.reason


@pytest.mark.parametrize("kind", [Format.PARQUET, Format.CSV, Format.JSON, Format.AVRO, Format.ORC])
def test_files_of_a_bare_folder_are_masked_in_one_step(kind: Format) -> None:
    plan = lake(format=kind).plan(of("amount"))
    found = masked(plan)
    assert (found.mask.columns, found.mask.found_by) == (("note",), ("uid",))
    mine, verified = (s for s in plan.steps if s.copy_ == "c-prod.a")
    assert (mine.action, mine.executor, verified.action) == (Action.FILES_MASK_ROWS, "files", Action.VERIFY_COPY)
    assert (mine.parameters["format"], mine.parameters["columns"]) == (kind.value, ["note"])
    assert mine.hazards == ("F1", "F2b", "F3", "F3b")
    assert (plan.complete, plan.applyable, plan.totals.exempt) == (True, True, 1)


def test_the_key_stays_where_no_held_column_tells_whose_row_it_is() -> None:
    found = masked(lake().plan(of("amount")))
    assert (found.mask.columns, found.mask.found_by) == (("note",), ("uid",))
    assert "uid is also kept" in found.reason


def test_branches_are_masked_with_their_table() -> None:
    refs = (Ref(name="audit", kind=RefKind.BRANCH, at="7"),)
    plan = lake(format=ICEBERG, refs=refs).plan(of("uid"))
    history = masked(plan, "a@branch.audit")
    assert history.mask == masked(plan).mask
    assert history.origin == "c-prod.a"
    actions = [s.action for s in plan.steps if s.copy_ == "c-prod.a"]
    assert actions[:2] == [ICEBERG_MASK_ROWS, ICEBERG_REWRITE_FILES]


def test_a_category_holds_the_columns_that_lineage_finds_in_it() -> None:
    by_category = hold("prod.a", categories=["customer_id"])
    estate = lake()
    category = copy(estate.plan(), "a").columns[0].category
    found = masked(estate.plan({**by_category, "categories": [category.upper()]}))
    assert [c.name for c in found.mask.held] == ["uid"]
    unknown = estate.plan({**by_category, "categories": ["blood group"]})
    assert strategies(unknown)["c-prod.a"] == "exempt"
    assert kinds(unknown) == ["hold_unmatched"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"categories": ["account_id"]}, "no separate column for the category account_id, which lies inside uid"),
        ({"columns": ["uid.no"]}, "no column uid.no (a hold cannot keep a single field: hold `uid`)"),
    ],
)
def test_a_field_of_a_struct_cannot_be_held_by_itself(names: dict[str, Any], why: str) -> None:
    """The struct as a whole would keep what the hold does not ask for; so everything is kept, and a gap says why."""
    columns = (Column(name="uid", type="struct<no:bigint,phone:string>"), *COLUMNS[1:])
    plan = lake(columns=columns).plan(hold("prod.a", **names))
    assert strategies(plan)["c-prod.a"] == "exempt"
    (gap,) = plan.gaps
    assert (gap.kind, plan.applyable) == ("hold_unmatched", False)
    assert why in gap.reason


def test_each_column_ends_by_itself_and_the_first_end_is_when_to_plan_again() -> None:
    early = of("amount", id="H2", basis="court order", until="2028-01-01T00:00:00Z")
    never = of("uid", id="H3", basis="dispute", until="indefinite")
    plan = lake().plan(of("amount"), early, never)
    found = masked(plan)
    assert [(c.name, c.until, c.holds) for c in found.mask.held] == [
        ("uid", None, ("H3",)),
        ("amount", END.astimezone(timezone.utc), ("H1", "H2")),
    ]
    assert found.exemption.until == plan.totals.recheck_on == END
    assert masked(lake().plan(never)).exemption.until is None


def test_a_hold_on_the_whole_copy_goes_before_one_on_columns() -> None:
    whole = hold("prod.a", id="H2", basis="court order")
    plan = lake().plan(of("uid"), whole)
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert set(copy(plan, "a").exemption.holds) == {"H1", "H2"}
    assert (kinds(plan), touched(plan)) == ([], {"c-prod.users", "c-prod.b"})


def test_a_copy_that_is_kept_whole_hides_no_hold_on_columns_of_another() -> None:
    estate = Lake(states={"a": {"columns": COLUMNS}, "b": {"columns": COLUMNS}})
    plan = estate.plan(of("uid"), hold("prod.a", id="H2"), hold("prod.b", id="H3", columns=["uid"]))
    assert (strategies(plan)["c-prod.a"], strategies(plan)["c-prod.b"]) == ("exempt", "mask_columns")


@pytest.mark.parametrize("column_until", ["2031-01-01T00:00:00Z", "2026-12-24T00:00:00Z", "indefinite"])
def test_a_copy_that_is_kept_whole_is_planned_again_when_its_whole_holds_end(column_until: str) -> None:
    whole = hold("prod.a", id="H2", basis="court order", until="2027-01-01T00:00:00Z")
    plan = lake().plan(of("uid", until=column_until), whole)
    end = datetime(2027, 1, 1, tzinfo=timezone.utc)
    assert (strategies(plan)["c-prod.a"], copy(plan, "a").exemption.until) == ("exempt", end)
    assert plan.totals.recheck_on == end


def test_a_copy_whose_columns_are_all_held_is_planned_again_when_the_first_is_free() -> None:
    later = of("amount", "note", id="H2", basis="court order", until="2036-01-01T00:00:00Z")
    plan = lake().plan(of("uid"), later)
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert plan.totals.recheck_on == END


def test_where_every_column_is_held_nothing_is_left_to_mask() -> None:
    plan = lake().plan(of("uid", "amount", "note"))
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert kinds(plan) == []


def test_the_rest_is_masked_in_a_shallow_clone_too() -> None:
    estate = Lake(states={"a": {"columns": COLUMNS}, "b": {"columns": COLUMNS, "clone_of": "/w/a"}})
    plan = estate.plan(hold("prod.b", columns=["uid"]))
    assert strategies(plan)["c-prod.a"] == "delete_by_key"
    (step,) = [s for s in plan.steps if s.action is DELTA_MASK_ROWS]
    assert step.parameters["materialise"] is True
    purge = next(s for s in plan.steps if s.copy_ == "c-prod.a" and s.action is DELTA_PURGE)
    assert "c-prod.b/99-verify" in purge.depends_on


# --- otherwise the whole copy is kept, and a gap says why


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"fixed": {"note": "NOT NULL"}}, "note is NOT NULL"),
        ({"fixed": {"NOTE": "a generated column"}}, "note is a generated column"),
        ({"fixed": {"amount": "a generated column"}}, "amount is held, but computed from other columns"),
        ({"partition_columns": ("note",)}, "note is a partition column"),
        ({"properties": {"delta.constraints.long": "length(Note) > 3"}}, "note is in the constraint long"),
        ({"properties": {"delta.columnMapping.mode": "name"}}, "its columns are mapped"),
        ({"format": Format.PARQUET, "fixed": {"note": "NOT NULL"}}, "note is NOT NULL"),
        ({"format": Format.CSV, "partition_columns": ("note",)}, "note is a partition column"),
        ({"format": Format.PARQUET, "partition_columns": ("uid",)}, "no step can change single rows of the person"),
        (
            {
                "format": ICEBERG,
                "nessie": NessieTable(catalog="n", ref="main", kind=RefKind.NESSIE_BRANCH),
            },
            "a table of a Nessie catalog",
        ),
        (
            {"format": HUDI, "properties": {"hoodie.table.recordkey.fields": "uid,note"}},
            "part of the record key",
        ),
        ({"format": HUDI, "properties": {"hoodie.table.precombine.field": "note"}}, "the precombine field"),
    ],
)
def test_a_column_that_cannot_become_null_keeps_the_whole_copy(state: dict[str, Any], words: str) -> None:
    plan = lake(**state).plan(of("uid", "amount"))
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert [(g.id, words in g.reason) for g in plan.gaps] == [("gap-hold_keeps_rest-prod.a", True)]
    assert "c-prod.a" not in touched(plan)
    assert not plan.applyable


@pytest.mark.parametrize(
    "state",
    [
        {"fixed": {"uid": "NOT NULL"}},
        {"partition_columns": ("amount",)},
        {"properties": {"delta.constraints.sum": "amount > 0 OR footnote = 1"}},
    ],
)
def test_what_stays_may_be_of_any_kind(state: dict[str, Any]) -> None:
    assert masked(lake(**state).plan(of("uid", "amount"))).mask.columns == ("note",)


def test_a_column_that_is_not_there_keeps_the_whole_copy() -> None:
    plan = lake().plan(of("uid", "none"))
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert [g.reason for g in plan.gaps] == [
        "the hold H1 names prod.a, and the dataset has no column none: data that it should keep may be erased"
    ]


def test_columns_of_an_archive_cannot_be_held_alone() -> None:
    plan = Lake(objects=(archive(),)).plan(hold("s3://b/p", columns=["uid"]))
    assert {strategies(plan)[c] for c in ("c-b-p", "c-b-p-versions")} == {"exempt"}
    assert "hold_keeps_rest" in kinds(plan)


def test_a_table_that_is_rebuilt_has_no_rows_to_mask() -> None:
    estate = Lake(
        copies={"sums": Subtype.AGGREGATION},
        sql={"sums": "INSERT OVERWRITE TABLE sums SELECT SUM(amount) FROM users"},
    )
    plan = estate.plan(hold("prod.sums", columns=["amount"]))
    assert strategies(plan)["c-prod.sums"] == "exempt"
    assert kinds(plan) == ["hold_keeps_rest", "hold_overwritten"]


# --- what would destroy it, or bring the person back


def test_the_files_of_a_masked_table_stay_where_a_held_clone_reads_them() -> None:
    plan = Lake(states={"a": {"columns": COLUMNS}, "b": {"clone_of": "/w/a"}}).plan(of("uid"), hold("prod.b", id="H2"))
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert kinds(plan) == ["hold_keeps_rest"]
    assert "the held clone prod.b reads its files" in plan.gaps[0].reason
    assert touched(plan) == {"c-prod.users"}


def test_a_folder_around_a_masked_one_is_not_swept() -> None:
    plan = Lake(states={"a": {"location": "/w/b/inner", "columns": COLUMNS}}).plan(of("uid"))
    assert strategies(plan)["c-prod.b"] == "blocked"
    assert strategies(plan)["c-prod.a"] == "mask_columns"
    both = Lake(states={"a": {"location": "/w/b/inner", "columns": COLUMNS}, "b": {"columns": COLUMNS}})
    plan = both.plan(of("uid"), hold("prod.b", columns=["uid"], id="H2"))
    assert {strategies(plan)[c] for c in ("c-prod.a", "c-prod.b")} == {"exempt"}


def test_what_would_be_rebuilt_from_masked_data_is_blocked() -> None:
    estate = Lake(
        copies={"a": Subtype.IDENTITY, "sums": Subtype.AGGREGATION},
        states={"a": {"columns": COLUMNS}},
        inputs={"sums": "a"},
        sql={"sums": "INSERT OVERWRITE TABLE sums SELECT SUM(amount) FROM a"},
    )
    assert strategies(estate.plan())["c-prod.sums"] == "rebuild"
    assert strategies(estate.plan(of("uid", "amount")))["c-prod.sums"] == "blocked"


def test_jobs_that_read_or_replace_masked_data_are_gaps() -> None:
    source = Lake(states={"users": {"columns": COLUMNS}})
    assert kinds(source.plan(hold("prod.users", columns=["uid"]))) == ["hold_refills"]
    again = Lake(states={"a": {"columns": COLUMNS}}, sql={"a": "INSERT OVERWRITE TABLE a SELECT uid FROM users"})
    assert kinds(again.plan(of("uid"))) == ["hold_overwritten"]


def test_a_backup_of_masked_data_is_a_gap() -> None:
    plan = Lake(states={"a": {"columns": COLUMNS}}, backups=(DUMP,)).plan(of("uid"))
    assert "hold_in_backup" in kinds(plan)
