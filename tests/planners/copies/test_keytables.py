"""Key tables and what they encrypt, planned without Spark. Each guard was seen red."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.keys import KeyTable
from pii_tracer.lake.keys.key_facts import KeyFacts, KmsKey
from pii_tracer.lineage.graph.canonical_facts import Facts, with_edges
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    JobRef,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import (
    Column,
    ColumnId,
    DatasetId,
    Strategy,
)
from pii_tracer.model.errors import PlanError
from planners.copies.scan_evidence import Evidence
from tests.planners.smalllake import NOW, Lake, archive, copy, dataset, hold, kinds, strategies
from tests.waivers import waivers_of

KEYS: dict[str, Any] = {
    "name": "people",
    "subject": "user",
    "table": "prod.keys",
    "person_column": "uid",
    "key_column": "kid",
    "wrapped_column": "wrapped",
    "cache_seconds": 3600,
    "wrapping": {"kind": "local", "file": "kek"},
    "encrypts": [{"dataset": "prod.calls", "columns": ["phone"], "key_column": "kid"}],
}
CLEAN = Evidence(files=1, files_with_person=0, bytes=0)


@dataclass
class KeyLake(Lake):
    """`keys` has the user's key by lineage from the estate file alone; `calls` is encrypted under it."""

    copies: dict[str, Subtype] = field(default_factory=lambda: {"a": Subtype.IDENTITY})
    states: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "keys": {"columns": columns("uid", "kid", "wrapped")},
            "calls": {"columns": columns("kid", "phone")},
        }
    )
    loose: tuple[str, ...] = ("keys", "calls")
    seen: dict[str, Evidence] = field(default_factory=lambda: {"/w/calls": CLEAN})
    keys: tuple[dict[str, Any], ...] = (KEYS,)
    vault: bool = False
    stray: bool = False
    jobs: tuple[tuple[str, str, str], ...] = ()
    texts: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def _graph(self) -> LineageGraph:
        graph = super()._graph()
        graph = LineageGraph(with_edges(with_jobs(graph.facts, self.texts), [told(*job) for job in self.jobs]))
        if self.stray:
            edge = Edge(
                source=ColumnId(dataset=dataset("elsewhere"), column="number"),
                target=ColumnId(dataset=dataset("keys"), column="uid"),
                type=EdgeType.DIRECT,
                subtype=Subtype.IDENTITY,
                expression="s.number",
            )
            graph = LineageGraph(with_edges(graph.facts, [edge]))
        if not self.vault:
            return graph
        edge = Edge(
            source=ColumnId(dataset=dataset("users"), column="uid"),
            target=ColumnId(dataset=dataset("calls"), column="token"),
            type=EdgeType.DIRECT,
            subtype=Subtype.TRANSFORMATION,
            expression="vault(s.uid)",
        )
        return LineageGraph(with_edges(graph.facts, [edge]))


def told(source: str, expression: str, target: str) -> Edge:
    """`table.column`, an expression over it, `table.column`; `max(…)` is an aggregate."""
    (of, column), (into, name) = source.split("."), target.split(".")
    subtype = Subtype.IDENTITY if expression == column else Subtype.TRANSFORMATION
    return Edge(
        source=ColumnId(dataset=dataset(of), column=column),
        target=ColumnId(dataset=dataset(into), column=name),
        type=EdgeType.DIRECT,
        subtype=Subtype.AGGREGATION if expression.startswith("max(") else subtype,
        expression=expression,
    )


def with_jobs(facts: Facts, texts: dict[str, tuple[str, tuple[str, ...]]]) -> Facts:
    """By table: the statement of the job that writes it, and what that reads."""
    jobs = [
        JobRef(job=f"job_{name}", sql=sql, statement=sql, inputs=tuple(map(dataset, read)), output=dataset(name))
        for name, (sql, read) in texts.items()
    ]
    return facts.model_copy(update={"jobs": (*facts.jobs, *jobs)})


def columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=n, type="string") for n in names)


def encrypting(**changes: Any) -> tuple[dict[str, Any], ...]:
    return ({**KEYS, "encrypts": [{**KEYS["encrypts"][0], **changes}]},)


def test_a_key_table_is_a_copy_whose_row_leaves_and_whose_caches_are_waited_for() -> None:
    plan = KeyLake().plan()
    key = copy(plan, "keys")
    assert (key.kind.value, key.strategy) == ("KEY", Strategy.DELETE_BY_KEY)
    assert key.match is not None
    assert [t.column for t in key.match.terms] == ["uid"]
    actions = [s.action.value for s in plan.steps if s.copy_ == key.id]
    assert actions[0] == "delta_delete_rows"
    assert actions[-2:] == ["key_await_caches", "verify_copy"]
    wait = next(s for s in plan.steps if s.action.value == "key_await_caches")
    assert wait.estimate.wait == 3600
    assert (wait.earliest_finish - wait.earliest_start).total_seconds() >= 3600
    assert plan.complete


def test_a_copy_in_which_all_is_encrypted_has_no_row_to_delete_and_follows_the_key() -> None:
    plan = KeyLake().plan()
    calls = copy(plan, "calls")
    assert (calls.strategy, calls.match) == (Strategy.DESTROY_KEY, None)
    assert copy(plan, "keys").facts["opens"] == ["c-prod.calls"]
    steps = [s for s in plan.steps if s.copy_ == calls.id]
    assert [s.action.value for s in steps] == ["key_try_to_read", "verify_copy"]
    assert any(d.endswith("key-await-caches") for d in steps[0].depends_on)
    assert not any(s.irreversible for s in steps)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (Evidence(1, 1, 9, strong=frozenset({"user.uid"})), "in plain"),
        (Evidence(1, 0, 0, unread=("f: torn",)), "decoded"),
        (Evidence(1, 1, 9, weak=frozenset({"kid"})), "may be in plain text in kid"),
    ],
)
def test_whatever_is_readable_beside_the_ciphertext_blocks(seen: Evidence, why: str) -> None:
    plan = KeyLake(seen={"/w/calls": seen}).plan()
    assert copy(plan, "calls").strategy is Strategy.BLOCKED
    (gap,) = [g for g in plan.gaps if g.kind == "key_readable"]
    assert why in gap.reason
    assert not plan.applyable


def test_a_personal_column_that_is_not_encrypted_blocks() -> None:
    lake = KeyLake(vault=True)
    lake.states["calls"] = {"columns": columns("kid", "phone", "token")}
    plan = lake.plan()
    assert copy(plan, "calls").strategy is Strategy.BLOCKED
    assert any("not encrypted: token" in g.reason for g in plan.gaps)
    lake.keys = encrypting(columns=["phone", "token"])
    assert copy(lake.plan(), "calls").strategy is Strategy.DESTROY_KEY
    lake.keys = ()
    assert copy(lake.plan(), "calls").strategy is Strategy.BLOCKED


def test_a_copy_with_the_plain_key_beside_loses_its_rows_as_ever() -> None:
    lake = KeyLake(keys=encrypting(dataset="prod.a", columns=["amount"], key_column="uid"))
    lake.states["a"] = {"columns": columns("uid", "amount")}
    plan = lake.plan()
    assert copy(plan, "a").strategy is Strategy.DELETE_BY_KEY
    assert "key_encrypted_columns" not in kinds(plan)
    assert copy(plan, "keys").facts["opens"] == ["c-prod.a"]


def test_a_hold_on_what_the_key_opens_holds_the_key() -> None:
    lake = KeyLake(keys=encrypting(dataset="prod.a", columns=["amount"], key_column="uid"))
    plan = lake.plan(hold("prod.a"))
    assert strategies(plan)["c-prod.a"] == "exempt"
    assert strategies(plan)["c-prod.keys"] == "exempt"
    assert not any(s.action.value == "key_await_caches" for s in plan.steps)
    held = KeyLake().plan(hold("prod.calls"))
    assert {strategies(held)[c] for c in ("c-prod.calls", "c-prod.keys")} == {"exempt"}


def test_a_held_key_leaves_other_ciphertext_readable_and_the_plan_says_so() -> None:
    plan = KeyLake().plan(hold("prod.keys"))
    assert strategies(plan)["c-prod.keys"] == "exempt"
    assert copy(plan, "calls").strategy is Strategy.BLOCKED
    assert "hold_blocks" in kinds(plan)
    assert not plan.applyable


def test_clones_and_archives_of_encrypted_data_follow_the_key_and_its_holds() -> None:
    lake = KeyLake(loose=("keys", "calls", "clone"), seen={"/w/calls": CLEAN, "/w/clone": CLEAN})
    lake.states["clone"] = {"clone_of": "/w/calls", "columns": columns("kid", "phone")}
    lake.objects = (archive(of="prod.calls"),)
    plan = lake.plan()
    assert strategies(plan)["c-prod.clone"] == "destroy_key"
    stored = [c for c in plan.copies if c.location == "s3://b/p"]
    assert {c.strategy for c in stored} == {Strategy.DESTROY_KEY}
    assert {c.kind.value for c in stored} == {"ARCHIVE", "OBJECT_VERSION"}
    assert kinds(plan) == ["plain_archive"]
    assert strategies(lake.plan(hold("s3://b/p")))["c-prod.keys"] == "exempt"
    deep = archive(of="prod.calls")
    frozen = tuple(v.model_copy(update={"storage_class": "GLACIER"}) for v in deep.versions)
    lake.objects = (deep.model_copy(update={"versions": frozen}),)
    plan = lake.plan()
    assert {c.strategy for c in plan.copies if c.location == "s3://b/p"} == {Strategy.BLOCKED}
    assert "key_archived_ciphertext" in kinds(plan)


def test_archives_of_encrypted_data_are_not_taken_for_ciphertext_until_somebody_looked() -> None:
    main = archive(of="prod.calls")
    replica = main.model_copy(
        update={"bucket": "r", "dataset": DatasetId(namespace="s3://r", name="p"), "replica_of": "s3://b/p"}
    )
    lake = KeyLake(objects=(main, replica))
    plan = lake.plan()
    gaps = {g.id: g for g in plan.gaps}
    assert set(gaps) == {"gap-plain_archive-b-p", "gap-plain_archive-r-p"}
    assert "Nobody checked" in gaps["gap-plain_archive-b-p"].reason
    assert not plan.applyable
    later = NOW + timedelta(days=30)
    waivers = waivers_of(gaps.values(), later)
    assert lake.plan(waivers=waivers).complete


def test_an_archive_of_encrypted_data_counts_for_a_person_without_a_key_too() -> None:
    lake = KeyLake(seen={"/w/calls": CLEAN, "/w/keys": CLEAN}, objects=(archive(of="prod.calls"),))
    assert kinds(lake.plan()) == ["plain_archive"]


def test_archives_of_encrypted_rows_that_the_persons_key_finds_are_rewritten() -> None:
    lake = KeyLake(keys=encrypting(dataset="prod.a", columns=["amount"], key_column="uid"))
    lake.states["a"] = {"columns": columns("uid", "amount")}
    lake.objects = (archive(of="prod.a"),)
    assert lake.plan().complete


def test_a_clone_of_the_key_table_remembers_the_key_and_is_treated_first() -> None:
    lake = KeyLake(loose=("keys", "calls", "kept"))
    lake.states["kept"] = {"clone_of": "/w/keys", "columns": columns("uid", "kid", "wrapped")}
    plan = lake.plan()
    assert strategies(plan)["c-prod.kept"] == "delete_by_key"
    ids = [s.id for s in plan.steps]
    wait = ids.index(next(i for i in ids if i.endswith("key-await-caches")))
    assert ids.index("c-prod.kept/99-verify") < wait
    lake.states["kept"] = {"same_files_as": "/w/keys", "columns": columns("uid", "kid", "wrapped")}
    lake.objects = (archive(of="prod.keys"),)
    plan = lake.plan()
    (last,) = [s for s in plan.steps if s.action.value == "key_await_caches"]
    assert {"c-prod.kept/99-verify", "c-b-p/99-verify", "c-b-p-versions/99-verify"} <= set(last.depends_on)


def cached(*more: str) -> KeyLake:
    """`cache` has wrapped keys out of the key table, `more` out of the cache; each with the ids of the keys."""
    lake = KeyLake(loose=("keys", "calls", "cache", *more))
    for source, name in zip(("keys", "cache"), ("cache", *more), strict=False):
        lake.states[name] = {"columns": columns("kid", "wrapped")}
        lake.jobs += tuple((f"{source}.{c}", c, f"{name}.{c}") for c in ("kid", "wrapped"))
        lake.texts[name] = (f"INSERT OVERWRITE {name} SELECT kid, wrapped FROM {source}", (source,))
    return lake


def test_a_copy_that_a_job_makes_of_the_key_table_is_waited_for() -> None:
    lake = cached("again")
    lake.objects = (archive(of="prod.cache"),)
    plan = lake.plan()
    assert {strategies(plan)[f"c-prod.{n}"] for n in ("cache", "again")} == {"rebuild"}
    (wait,) = [s for s in plan.steps if s.action.value == "key_await_caches"]
    made = {"c-prod.cache/99-verify", "c-prod.again/99-verify", "c-b-p-versions/99-verify"}
    assert made <= set(wait.depends_on)
    ids = [s.id for s in plan.steps]
    assert max(ids.index(i) for i in made) < ids.index(wait.id) < ids.index("c-prod.calls/01-key-try-to-read")


@pytest.mark.parametrize("more", [{"clone_of": "/w/keys"}, {}])
def test_a_held_copy_of_the_key_leaves_the_ciphertext_readable_and_the_plan_says_so(more: dict[str, Any]) -> None:
    lake = KeyLake(loose=("keys", "calls", "cache")) if more else cached()
    lake.states["cache"] = {"columns": columns("uid", "kid", "wrapped"), **more}
    plan = lake.plan(hold("prod.cache"))
    assert strategies(plan)["c-prod.cache"] == "exempt"
    assert strategies(plan)["c-prod.calls"] == "blocked"
    assert any(g.kind == "hold_blocks" and "prod.cache" in g.reason for g in plan.gaps)


def test_a_held_archive_of_the_key_table_leaves_the_ciphertext_readable() -> None:
    plan = KeyLake(objects=(archive(of="prod.keys"),)).plan(hold("s3://b/p"))
    assert strategies(plan)["c-prod.calls"] == "blocked"
    assert not plan.applyable


def test_what_is_encrypted_with_the_key_is_no_copy_of_it() -> None:
    lake = KeyLake(jobs=(("keys.wrapped", "seal(k.wrapped)", "calls.phone"), ("keys.kid", "kid", "calls.kid")))
    plan = lake.plan()
    assert strategies(plan)["c-prod.calls"] == "destroy_key"
    (wait,) = [s for s in plan.steps if s.action.value == "key_await_caches"]
    assert not any("calls" in i for i in wait.depends_on)


def test_wrapped_keys_beside_the_ciphertext_block() -> None:
    lake = KeyLake(jobs=(("keys.wrapped", "wrapped", "calls.enveloped"),))
    lake.states["calls"] = {"columns": columns("kid", "phone", "enveloped")}
    plan = lake.plan()
    assert copy(plan, "calls").strategy is Strategy.BLOCKED
    assert any("wrapped keys themselves: enveloped" in g.reason for g in plan.gaps)


def test_a_key_that_only_a_copy_by_a_job_remembers_is_not_taken_for_gone() -> None:
    lake = cached()
    lake.seen |= {"/w/keys": CLEAN, "/w/cache": CLEAN}
    plan = lake.plan()
    assert "key_remembered" in kinds(plan)
    assert not plan.complete


def exported(*jobs: tuple[str, str, str], **more: Any) -> KeyLake:
    """A job makes `export` out of the encrypted dataset; nothing of the person's known values is seen in it."""
    states = {"export": {"columns": columns("kid", "address")}, "further": {"columns": columns("kid", "address")}}
    lake = KeyLake(loose=("keys", "calls", "export", "further"), jobs=jobs, **more)
    lake.states |= states
    lake.seen |= {"/w/export": CLEAN, "/w/further": CLEAN}
    return lake


OPENED = ("calls.phone", "open(c.phone)", "export.address")


def test_what_a_job_opens_out_of_an_encrypted_dataset_is_a_gap() -> None:
    jobs = (OPENED, ("calls.kid", "kid", "export.kid"), ("export.address", "address", "further.address"))
    plan = exported(*jobs).plan()
    gaps = {g.id: g for g in plan.gaps}
    assert set(gaps) == {"gap-key_opened-prod.export", "gap-key_opened-prod.further"}
    assert "prod.calls" in gaps["gap-key_opened-prod.export"].reason
    assert "address" in gaps["gap-key_opened-prod.export"].reason
    assert not plan.applyable
    assert not {e.table for e in plan.examined} & {"prod.export", "prod.further"}


def test_what_holds_no_cell_is_no_gap() -> None:
    for jobs in (
        (("calls.kid", "kid", "export.kid"),),
        (("calls.phone", "max(c.phone)", "export.address"),),  # without the key's name beside it, nobody's row
    ):
        assert exported(*jobs).plan().complete


def test_an_aggregate_for_each_key_is_what_was_opened() -> None:
    jobs = (("calls.phone", "max(open(c.phone))", "export.address"), ("calls.kid", "kid", "export.kid"))
    assert kinds(exported(*jobs).plan()) == ["key_opened"]


def test_a_column_that_was_called_otherwise_when_a_job_read_it_counts_as_encrypted() -> None:
    assert kinds(exported(("calls.former_name", "open(c.former_name)", "export.address")).plan()) == ["key_opened"]


def test_what_is_declared_to_be_encrypted_as_well_is_no_gap_only_in_these_columns() -> None:
    further = {"dataset": "prod.export", "columns": ["address"], "key_column": "kid"}
    keys = ({**KEYS, "encrypts": [*KEYS["encrypts"], further]},)
    assert exported(OPENED, keys=keys).plan().complete
    lake = exported(OPENED, ("calls.phone", "open(c.phone)", "export.plain"), keys=keys)
    lake.states["export"] = {"columns": columns("kid", "address", "plain")}
    (gap,) = lake.plan().gaps
    assert (gap.kind, "plain may contain" in gap.reason) == ("key_opened", True)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("INSERT INTO export SELECT u.uid, open(c.phone) FROM users u JOIN calls c ON u.line = c.kid", True),
        ("INSERT INTO export SELECT u.uid, open(c.phone) FROM calls c LEFT JOIN users u ON u.line = c.kid", False),
        ("INSERT INTO export SELECT uid, '' FROM users UNION ALL SELECT kid, open(phone) FROM calls", False),
    ],
)
def test_rows_with_the_persons_own_key_beside_are_deleted_by_it(sql: str, found: bool) -> None:
    lake = exported(OPENED, ("users.uid", "uid", "export.uid"), texts={"export": (sql, ("users", "calls"))})
    lake.states["export"] = {"columns": columns("uid", "address")}
    del lake.seen["/w/export"]
    plan = lake.plan()
    assert strategies(plan)["c-prod.export"] == ("delete_by_key" if found else strategies(plan)["c-prod.export"])
    assert ("key_opened" in kinds(plan)) is not found


def test_a_second_job_that_writes_opened_cells_without_the_persons_key_is_a_gap() -> None:
    lake = exported(OPENED, ("users.uid", "uid", "export.uid"))
    lake.texts["export"] = ("INSERT INTO export (address) SELECT open(phone) FROM calls", ("calls",))
    lake.states["export"] = {"columns": columns("uid", "address")}
    del lake.seen["/w/export"]
    assert "key_opened" in kinds(lake.plan())


def test_what_was_opened_is_not_rebuilt_before_the_key_is_gone() -> None:
    lake = exported(OPENED, ("keys.kid", "kid", "calls.kid"), ("calls.kid", "kid", "export.kid"))
    lake.texts["export"] = ("INSERT OVERWRITE export SELECT kid, open(phone) FROM calls", ("calls",))
    lake.texts["calls"] = ("INSERT OVERWRITE calls SELECT kid, seal('') FROM keys", ("keys",))
    plan = lake.plan()
    assert strategies(plan)["c-prod.export"] == "blocked"
    assert "key_opened" in kinds(plan)


def test_a_person_without_a_key_needs_nothing_done_to_ciphertext() -> None:
    lake = KeyLake(seen={"/w/calls": CLEAN, "/w/keys": CLEAN})
    plan = lake.plan()
    assert set(strategies(plan)) == {"c-prod.users", "c-prod.a"}
    assert plan.complete


def test_a_key_that_only_a_clone_of_the_key_table_remembers_is_not_taken_for_gone() -> None:
    lake = KeyLake(loose=("keys", "calls", "kept"), seen={"/w/calls": CLEAN, "/w/keys": CLEAN})
    lake.states["kept"] = {"clone_of": "/w/keys", "columns": columns("uid", "kid", "wrapped")}
    plan = lake.plan()
    assert strategies(plan)["c-prod.kept"] == "delete_by_key"
    assert "key_remembered" in kinds(plan)
    assert not plan.complete


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (({**KEYS, "table": "prod.nowhere"},), "key_missing"),
        (({**KEYS, "wrapped_column": "w"},), "key_columns"),
        (encrypting(dataset="prod.nowhere"), "key_encrypted_missing"),
        (encrypting(columns=["number"]), "key_encrypted_columns"),
    ],
)
def test_what_is_declared_and_not_there_is_a_gap(keys: tuple[dict[str, Any], ...], kind: str) -> None:
    plan = KeyLake(keys=keys).plan()
    assert kind in kinds(plan)
    assert not plan.complete


@pytest.mark.parametrize(
    "changes",
    [
        {"encrypts": [{"dataset": "prod.calls", "key_column": "kid"}]},
        {"encrypts": [{"dataset": "prod.calls", "columns": ["kid"], "key_column": "kid"}]},
        {"cache_seconds": -1},
        {"wrapping": {"kind": "vault"}},
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        KeyTable.model_validate({**KEYS, **changes})


def test_rows_that_name_the_person_in_plain_are_deleted_though_no_lineage_leads_to_them() -> None:
    plain = {**KEYS, "key_column": None, "encrypts": [{**KEYS["encrypts"][0], "key_column": "uid"}]}
    lake = KeyLake(keys=(plain,), seen={})
    lake.states["calls"] = {"columns": columns("uid", "phone")}
    plan = lake.plan()
    assert strategies(plan)["c-prod.calls"] == "delete_by_key"
    assert copy(plan, "keys").facts["opens"] == ["c-prod.calls"]


def test_a_key_table_that_lineage_fills_from_elsewhere_is_not_taken_for_empty() -> None:
    lake = KeyLake(seen={"/w/calls": CLEAN, "/w/keys": Evidence(1, 1, 9, weak=frozenset({"uid"}))}, stray=True)
    plan = lake.plan()
    assert "key_untraced" in kinds(plan)
    assert not plan.complete


def test_a_part_without_the_key_would_claim_what_is_not_true() -> None:
    with pytest.raises(PlanError, match=r"destroying a key in prod\.keys"):
        KeyLake().plan(only=("prod.calls",))
    part = KeyLake().plan(only=("prod.calls", "prod.keys"))
    assert set(strategies(part)) == {"c-prod.calls", "c-prod.keys"}


def kms_lake(whole: KmsKey, *own: KmsKey, **more: Any) -> KeyLake:
    wrapping = {"kind": "kms", "key_id": "shared", "region": "r"}
    keys = ({**KEYS, "wrapping": wrapping, "kms_key_column": "kms"},)
    return KeyLake(keys=keys, facts={"people": KeyFacts(kms=whole, own=own, **more)})


def kms_key(name: str, state: str = "Enabled", **more: Any) -> KmsKey:
    return KmsKey(key_id=name, region="r", state=state, **more)


def test_a_key_of_the_persons_own_is_deleted_last_and_dated() -> None:
    plan = kms_lake(kms_key("shared"), kms_key("own")).plan()
    steps = [s for s in plan.steps if s.executor == "kms"]
    assert [s.action.value for s in steps] == ["kms_schedule_deletion", "kms_await_deletion"]
    assert steps[0].parameters["kms_keys"] == ["own"]
    assert any(d.endswith("key-await-caches") for d in steps[0].depends_on)
    assert steps[1].estimate.wait == 7 * 86400
    assert plan.complete
    with_replica = kms_lake(kms_key("shared"), kms_key("own", replicas=(kms_key("own"),))).plan()
    assert [s.estimate.wait for s in with_replica.steps if s.executor == "kms"] == [0, 14 * 86400]


def test_states_of_kms_keys_are_shown_and_one_that_takes_everybody_along_is_a_gap() -> None:
    plan = kms_lake(kms_key("shared", grants=2), kms_key("own", "PendingDeletion", deletion_date=NOW)).plan()
    assert copy(plan, "keys").facts["kms"] == [
        "shared is Enabled, 2 grants",
        "own is PendingDeletion, until 2026-11-21",
    ]
    for state in ("Disabled", "PendingDeletion", "unknown"):
        plan = kms_lake(kms_key("shared", state), kms_key("own")).plan()
        assert "key_kms_state" in kinds(plan)
        assert not plan.complete


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"shared": 1}, "key_shared"),
        ({"shared_kms": 1}, "key_kms_shared"),
        ({"unread": "torn"}, "key_unread"),
    ],
)
def test_a_key_that_is_not_the_persons_alone_is_a_gap(facts: dict[str, Any], kind: str) -> None:
    plan = kms_lake(kms_key("shared"), **facts).plan()
    assert kind in kinds(plan)
    assert not plan.complete
    assert not any(s.executor == "kms" for s in plan.steps)
