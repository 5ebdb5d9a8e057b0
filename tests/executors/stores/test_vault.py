"""Glacier vaults: fetch, rewrite, delete, and believe only an inventory made later. Strict stand-in with its own clock."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.glacier.responses import GlacierResponse
from pyarrow import orc

from executors.context import ExecutionContext
from executors.stores.glacier.archive_delete import Awaiting
from executors.stores.glacier.executor import VaultExecutor
from executors.stores.glacier.vault_step_context import AwaitParameters, VaultWork
from pii_tracer.app import vault_verification as verdicts
from pii_tracer.app.execution.executor_value_search import ScanFinder
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Format, KeySet, Match
from pii_tracer.model.errors import RunError, ScanError
from pii_tracer.model.non_key_columns import NotKeys
from pii_tracer.model.plan import Copy, Step
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.executor_protocol import Outcome, PartlyDone, Progress
from pii_tracer.scan.decode.avro_container import open_container
from pii_tracer.verify.verdicts import ByteVerdict
from tests.glaciersupport import REGION, StrictGlacier, glacier, server, tree_hash
from tests.kits import tenant_rows
from tests.s3support import MATCH, PERSON, WEAK, estate, keyring, parquet, step, table, user_rows
from tests.scan.support import avro
from tests.waivers import MARKS

__all__ = ["glacier", "server"]

MIXED = parquet(table([PERSON, "2", "3", PERSON]))
OTHERS = parquet(table(["4", "5"]))


@dataclass
class Run:
    """A run on a vault: steps as the planner writes them, and a journal of what they answered."""

    glacier: StrictGlacier
    journal: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    steps: dict[Action, Step] = field(default_factory=dict)
    everything: tuple[KeySet, ...] = ()
    format: Format = Format.PARQUET
    match: Match = MATCH
    keyring: KeyRing = field(default_factory=keyring)
    not_keys: tuple[NotKeys, ...] = ()

    def of_tenants(self) -> None:
        """Persons with a key of several columns, who have an e-mail besides."""
        whole = tenant_rows.Ring({("4", "17")}).keys
        mail = KeySet(name="mail", origin="users.mail", weak=False, values=(("p0", "asha@north.example"),))
        self.match, self.keyring, self.everything = tenant_rows.MATCH, KeyRing((whole,)), (mail,)

    def plan(self, *ids: str, whole: bool = False) -> None:
        archives = [self._archive(i) for i in ids]
        where = {"vault": "cold", "account_id": "-", "region": REGION, "endpoint_url": self.glacier.endpoint}
        more: dict[Action, dict[str, Any]] = {
            Action.VAULT_RETRIEVE: {"tier": "Standard"},
            Action.VAULT_REWRITE: {
                "tier": "Standard",
                "format": self.format.value,
                "match": self.match.model_dump(mode="json"),
            },
            Action.VAULT_DELETE: {"rewritten_by": None if whole else "vault_rewrite"},
            Action.VAULT_AWAIT_INVENTORY: {
                "rewritten_by": None if whole else "vault_rewrite",
                "deleted_by": "vault_delete",
                "others": [],
            },
        }
        for action, parameters in more.items():
            made = step(action, {**where, "archives": archives, **parameters})
            self.steps[action] = made.model_copy(update={"id": action.value, "executor": "vault", "copy_": "c-vault"})

    def _archive(self, key: str) -> dict[str, Any]:
        there = self.glacier.archives[key]
        created = there.created.isoformat()
        named = {"id": key, "description": there.description, "created": created}
        return {**named, "size": len(there.body), "tree_hash": there.tree_hash}

    @property
    def context(self) -> ExecutionContext:
        found = estate("http://127.0.0.1:9", windows={"restore_check_minutes": 30})
        return ExecutionContext(
            found,
            Path(),
            self.keyring,
            lambda: self.glacier.now,
            told=self.told,
            everything=self.everything,
            finds=ScanFinder,
            not_keys=self.not_keys,
            marks=MARKS,
        )

    @property
    def executor(self) -> VaultExecutor:
        return VaultExecutor(self.context)

    def told(self, step_id: str) -> Sequence[Mapping[str, Any]]:
        return self.journal.get(step_id, [])

    def run(self, action: Action) -> Outcome:
        """As the runner does: check, run, and what the step answers goes into the journal, whatever it is."""
        work = self.steps[action]
        try:
            self.executor.check(work, vault_copy())
            outcome = self.executor.run(work, vault_copy())
        except PartlyDone as error:
            self.journal.setdefault(work.id, []).append(error.facts)
            raise
        self.journal.setdefault(work.id, []).append(outcome.facts)
        return outcome

    def until_done(self, action: Action) -> datetime:
        """Run, wait and run again; when it was over."""
        while (until := self.run(action).waiting_until) is not None:
            assert not self.ok(action)
            assert until > self.glacier.now
            self.glacier.advance(seconds=(until - self.glacier.now).total_seconds())
        assert self.ok(action)
        return self.glacier.now

    def ok(self, action: Action) -> bool:
        return self.executor.verify(self.steps[action], None).ok

    def all(self) -> None:
        for action in self.steps:
            self.until_done(action)

    def verdict(self) -> ByteVerdict:
        plan: Any = type("Plan", (), {"steps": tuple(self.steps.values())})
        return verdicts.look(plan, vault_copy(), self.told)


def vault_copy() -> Copy:
    return Copy.model_validate(
        {
            "id": "c-vault",
            "kind": "ARCHIVE",
            "dataset": {"namespace": f"glacier://{REGION}", "name": "cold"},
            "table": None,
            "location": f"glacier://{REGION}/cold",
            "format": Format.PARQUET,
            "carries": "key",
            "strategy": "restore_rewrite_archive",
            "columns": [],
            "lineage": [],
            "reason": "",
            "facts": {"vault": "cold"},
        }
    )


@pytest.fixture
def run(glacier: StrictGlacier) -> Run:
    return Run(glacier)


def holders(bodies: list[bytes]) -> int:
    return sum(user_rows(body) > 0 for body in bodies)


def test_the_person_leaves_the_vault_and_nobody_else_does(run: Run, glacier: StrictGlacier) -> None:
    mixed, clean = glacier.put(MIXED, "payments 2019"), glacier.put(OTHERS)
    run.plan(mixed, clean)
    assert holders(glacier.readable()) == 1
    run.until_done(Action.VAULT_RETRIEVE)
    rewritten = run.run(Action.VAULT_REWRITE).facts
    assert (rewritten["rewritten"], rewritten["left_alone"], rewritten["rows_dropped"]) == (1, 1, 2)
    # uploading the archive without the person is not enough: the old one stands beside it
    assert holders([a.body for a in glacier.archives.values()]) == 1
    run.until_done(Action.VAULT_DELETE)
    assert holders([a.body for a in glacier.archives.values()]) == 0
    # nor is deleting: what was fetched can be downloaded on
    assert holders(glacier.readable()) == 1
    over = run.until_done(Action.VAULT_AWAIT_INVENTORY)
    assert holders(glacier.readable()) == 0
    assert over - glacier.archives[clean].created > timedelta(hours=24)
    [new] = set(glacier.archives) - {clean}
    assert glacier.archives[new].description == "payments 2019"
    rows = pq.read_table(io.BytesIO(glacier.archives[new].body)).column("user_id").to_pylist()
    assert rows == [2, 3]
    assert glacier.archives[clean].body == OTHERS
    found = run.verdict()
    assert found.clean
    assert {f.path: f.sha256 for f in found.files} == {
        key: hashlib.sha256(glacier.archives[key].body).hexdigest() for key in (new, clean)
    }
    gone = list(verdicts.archives_gone(run.steps[Action.VAULT_DELETE], run.told))
    assert [(e.uri, e.sha256) for e in gone] == [
        (f"glacier://{REGION}/cold/{mixed}", hashlib.sha256(MIXED).hexdigest())
    ]


def test_one_person_of_two_with_one_number_leaves_the_vault(run: Run, glacier: StrictGlacier) -> None:
    hers, others = (
        {"tenant_id": "4", "user_id": 17},
        [{"tenant_id": "5", "user_id": 17}, {"tenant_id": "4", "user_id": 18}],
    )
    run.of_tenants()
    mixed, clean = glacier.put(tenant_rows.parquet([hers, *others])), glacier.put(tenant_rows.parquet(others))
    run.plan(mixed, clean)
    run.all()
    assert run.journal["vault_rewrite"][-1]["rows_dropped"] == 1
    [new] = set(glacier.archives) - {clean}
    assert mixed not in glacier.archives
    assert pq.read_table(io.BytesIO(glacier.archives[new].body)).to_pylist() == others
    assert run.verdict().clean


def test_an_archive_without_the_tenant_stays_and_is_told(run: Run, glacier: StrictGlacier) -> None:
    run.of_tenants()
    older = glacier.put(tenant_rows.older(Format.PARQUET))
    run.plan(older)
    run.until_done(Action.VAULT_RETRIEVE)
    with pytest.raises(PartlyDone, match="it has user_id but not tenant_id"):
        run.run(Action.VAULT_REWRITE)
    assert older in glacier.archives


def json_gz(*users: str) -> bytes:
    return gzip.compress("".join(f'{{"user_id": {user}}}\n' for user in users).encode(), mtime=0)


def avro_deflate(*users: str) -> bytes:
    schema = {"type": "record", "name": "row", "fields": [{"name": "user_id", "type": "long"}]}
    return avro(schema, [{"user_id": int(user)} for user in users], codec="deflate")


def orc_zlib(*users: str) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"user_id": [int(user) for user in users]}), sink, compression="zlib")
    return sink.getvalue()


@pytest.mark.parametrize(
    ("kind", "make", "read"),
    [
        (Format.JSON, json_gz, gzip.decompress),
        (Format.AVRO, avro_deflate, lambda data: list(open_container(memoryview(data)).records())),
        (Format.ORC, orc_zlib, lambda data: orc.ORCFile(io.BytesIO(data)).read()),
    ],
)
def test_archives_in_other_formats(
    run: Run, glacier: StrictGlacier, kind: Format, make: Callable[..., bytes], read: Callable[[bytes], Any]
) -> None:
    """An archive's name says nothing of its codec: its own bytes do."""
    run.format = kind
    mixed, clean = glacier.put(make(PERSON, "2", "3", PERSON)), glacier.put(make("4"))
    run.plan(mixed, clean)
    run.all()
    assert run.journal["vault_rewrite"][-1]["rows_dropped"] == 2
    [new] = set(glacier.archives) - {clean}
    assert mixed not in glacier.archives
    assert read(glacier.archives[new].body) == read(make("2", "3"))
    assert glacier.archives[clean].body == make("4")
    assert run.verdict().clean


def test_an_archive_that_cannot_be_rewritten_holds_up_no_other(run: Run, glacier: StrictGlacier) -> None:
    mixed, torn, clean = glacier.put(MIXED), glacier.put(MIXED[:-9]), glacier.put(OTHERS)
    run.plan(mixed, torn, clean)
    run.until_done(Action.VAULT_RETRIEVE)
    with pytest.raises(PartlyDone, match="1 of 3 archive") as error:
        run.run(Action.VAULT_REWRITE)
    assert [item["archive"] for item in error.value.facts["failed"]] == [torn]
    for _ in range(2):
        with pytest.raises(PartlyDone, match="and not deleted") as error:
            run.run(Action.VAULT_DELETE)
        assert error.value.facts["held"] == [torn]
        assert mixed not in glacier.archives
        assert {torn, clean} < set(glacier.archives)
        assert not run.ok(Action.VAULT_DELETE)
    assert run.executor.probe(run.steps[Action.VAULT_DELETE], None) is Progress.PARTIAL


def test_what_was_rewritten_is_remembered_when_another_cannot_be_fetched(run: Run, glacier: StrictGlacier) -> None:
    first, second = glacier.put(MIXED), glacier.put(MIXED)
    run.plan(first)
    run.until_done(Action.VAULT_RETRIEVE)
    run.plan(first, second)
    glacier.refused.add(second)
    with pytest.raises(PartlyDone, match="its retrieval was rejected: PolicyEnforcedException"):
        run.run(Action.VAULT_REWRITE)
    uploaded = len(glacier.archives)
    glacier.refused.clear()
    run.until_done(Action.VAULT_REWRITE)
    assert len(glacier.archives) == uploaded + 1, "no twin of the first"


def test_an_inventory_from_before_the_deletion_is_not_believed(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED))
    glacier.advance(hours=13)  # an inventory exists, and lists the archive
    for action in (Action.VAULT_RETRIEVE, Action.VAULT_REWRITE, Action.VAULT_DELETE):
        run.until_done(action)
    glacier.ask()
    glacier.advance(hours=5)  # the job ended after the deletion; what it brings is older
    assert run.run(Action.VAULT_AWAIT_INVENTORY).waiting_until is not None
    assert not run.ok(Action.VAULT_AWAIT_INVENTORY)
    with pytest.raises(ScanError, match="no inventory newer"):
        run.verdict()
    run.until_done(Action.VAULT_AWAIT_INVENTORY)
    assert run.verdict().clean


def test_nothing_is_deleted_whose_successor_the_journal_does_not_know(run: Run, glacier: StrictGlacier) -> None:
    key = glacier.put(MIXED)
    run.plan(key)
    run.until_done(Action.VAULT_RETRIEVE)
    with pytest.raises(RunError, match="nothing is deleted"):
        run.run(Action.VAULT_DELETE)
    assert key in glacier.archives


def test_whole_archives_go_where_the_estate_says_so(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED), glacier.put(OTHERS), whole=True)
    for action in (Action.VAULT_DELETE, Action.VAULT_AWAIT_INVENTORY):
        run.until_done(action)
    assert not glacier.archives
    assert run.verdict().clean


def test_a_locked_archive_is_told_and_the_others_go(run: Run, glacier: StrictGlacier) -> None:
    locked, free = glacier.put(MIXED), glacier.put(MIXED)
    run.plan(locked, free, whole=True)
    glacier.locked.add(locked)
    with pytest.raises(PartlyDone, match="AccessDeniedException"):
        run.run(Action.VAULT_DELETE)
    assert set(glacier.archives) == {locked}
    assert not run.ok(Action.VAULT_DELETE)
    glacier.locked.clear()
    run.until_done(Action.VAULT_DELETE)
    assert not glacier.archives


def test_deleting_what_is_deleted_is_no_error(run: Run, glacier: StrictGlacier) -> None:
    key = glacier.put(MIXED)
    run.plan(key, whole=True)
    run.run(Action.VAULT_DELETE)
    run.journal.clear()  # killed before the answer was written down
    assert run.executor.probe(run.steps[Action.VAULT_DELETE], None) is Progress.PARTIAL
    run.until_done(Action.VAULT_DELETE)
    run.until_done(Action.VAULT_AWAIT_INVENTORY)


def test_killed_between_an_upload_and_the_journal_leaves_a_twin_that_holds_nobody(
    run: Run, glacier: StrictGlacier
) -> None:
    run.plan(glacier.put(MIXED))
    run.until_done(Action.VAULT_RETRIEVE)
    run.run(Action.VAULT_REWRITE)
    run.journal.pop("vault_rewrite")
    assert run.executor.probe(run.steps[Action.VAULT_REWRITE], None) is Progress.NOT_STARTED
    for action in (Action.VAULT_REWRITE, Action.VAULT_DELETE, Action.VAULT_AWAIT_INVENTORY):
        run.until_done(action)
    assert len(glacier.archives) == 2
    assert holders(glacier.readable()) == 0
    assert run.verdict().clean


def test_what_was_fetched_and_expired_is_fetched_again(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED))
    run.until_done(Action.VAULT_RETRIEVE)
    glacier.advance(hours=30)
    assert run.run(Action.VAULT_REWRITE).waiting_until is not None
    run.until_done(Action.VAULT_REWRITE)
    assert run.journal["vault_rewrite"][-1]["rewritten"] == 1


def test_an_archive_that_somebody_else_deleted_is_told(run: Run, glacier: StrictGlacier) -> None:
    gone, there = glacier.put(MIXED), glacier.put(OTHERS)
    run.plan(gone, there)
    glacier.client().delete_archive(accountId="-", vaultName="cold", archiveId=gone)
    run.until_done(Action.VAULT_RETRIEVE)
    with pytest.raises(PartlyDone, match="not in the vault any more"):
        run.run(Action.VAULT_REWRITE)


def test_a_successor_that_is_lost_fails_the_run(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED))
    for action in (Action.VAULT_RETRIEVE, Action.VAULT_REWRITE, Action.VAULT_DELETE):
        run.until_done(action)
    glacier.archives.clear()
    with pytest.raises(PartlyDone, match="does not contain 1 archive"):
        run.until_done(Action.VAULT_AWAIT_INVENTORY)


def test_an_archive_that_came_later_is_unverified_never_clean(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED))
    late = glacier.put(parquet(table([PERSON, "9"])))
    run.all()
    found = run.verdict()
    assert not found.clean
    assert [u.partition(":")[0] for u in found.unverified] == [late]


def test_a_value_that_stays_without_the_persons_rows_stops_the_archive(run: Run, glacier: StrictGlacier) -> None:
    """The person's number in somebody else's note: neither uploaded nor deleted."""
    key = glacier.put(parquet(table([PERSON, "2"], ["mine", f"paid to {PERSON}"])))
    run.plan(key)
    run.until_done(Action.VAULT_RETRIEVE)
    with pytest.raises(PartlyDone, match="still contains a value") as error:
        run.run(Action.VAULT_REWRITE)
    assert PERSON not in str(error.value.facts)
    with pytest.raises(RunError, match="nothing is deleted"):
        run.run(Action.VAULT_DELETE)
    assert set(glacier.archives) == {key}


def test_without_a_journal_nothing_is_said_of_a_vault(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED))
    run.all()
    run.journal.clear()
    with pytest.raises(ScanError, match="does not trust the run's journal"):
        run.verdict()


def test_other_bytes_than_the_inventorys_are_not_rewritten(run: Run, glacier: StrictGlacier) -> None:
    key = glacier.put(MIXED)
    run.plan(key)
    glacier.archives[key].body = OTHERS
    run.until_done(Action.VAULT_RETRIEVE)
    with pytest.raises(PartlyDone, match="the received bytes differ from the archive"):
        run.run(Action.VAULT_REWRITE)
    assert set(glacier.archives) == {key}


def test_what_the_retrieval_policy_refuses_is_asked_for_again(run: Run, glacier: StrictGlacier) -> None:
    first, second = glacier.put(MIXED), glacier.put(OTHERS)
    run.plan(first, second)
    glacier.refused.add(second)
    with pytest.raises(PartlyDone, match="PolicyEnforcedException"):
        run.run(Action.VAULT_RETRIEVE)
    assert run.journal["vault_retrieve"][-1]["requested"] == 1
    glacier.refused.clear()
    run.all()
    assert len([j for facts in run.journal["vault_retrieve"] for j in facts["request_ids"]]) == 2
    assert run.verdict().clean


WEAK_KEY = KeySet(name="short", origin="users.short", weak=True, values=(("subj_1", WEAK),))


@pytest.mark.parametrize(("other_keys", "stops"), [([], True), (["note"], False)])
def test_a_short_number_stops_the_archive_unless_lineage_says_what_its_column_means(
    run: Run, glacier: StrictGlacier, other_keys: list[str], stops: bool
) -> None:
    """Searched for all that is known of the person, not only for what their rows are found by."""
    run.plan(glacier.put(parquet(table([PERSON, "2"], ["mine", WEAK]))))
    run.everything = (WEAK_KEY,)
    rewrite = run.steps[Action.VAULT_REWRITE]
    run.steps[Action.VAULT_REWRITE] = rewrite.model_copy(
        update={"parameters": {**rewrite.parameters, "other_keys": other_keys}}
    )
    run.until_done(Action.VAULT_RETRIEVE)
    if stops:
        with pytest.raises(PartlyDone, match="still contains a value"):
            run.run(Action.VAULT_REWRITE)
    else:
        run.until_done(Action.VAULT_REWRITE)


@pytest.mark.parametrize(("keys", "note", "stops"), [("ashakumari", "paid", False), ("7", "ashakumari", True)])
def test_another_with_a_longer_key_stops_no_archive(
    run: Run, glacier: StrictGlacier, keys: str, note: str, stops: bool
) -> None:
    """In the column by which its rows are dropped; in a note the same letters may be the person."""
    run.plan(glacier.put(parquet(pa.table({"user_id": [PERSON, keys], "note": ["mine", note]}))))
    (term,) = run.steps[Action.VAULT_REWRITE].parameters["match"]["terms"]
    run.everything = (KeySet(name=term["key_set"], origin="users", weak=False, values=(("subj_1", "ashakumar"),)),)
    run.until_done(Action.VAULT_RETRIEVE)
    if stops:
        with pytest.raises(PartlyDone, match="still contains a value"):
            run.run(Action.VAULT_REWRITE)
    else:
        run.until_done(Action.VAULT_REWRITE)


def test_large_archives_are_hashed_as_glacier_hashes(glacier: StrictGlacier) -> None:
    body = bytes(3 * 1024 * 1024 + 7)
    assert glacier.archives[glacier.put(body)].tree_hash == tree_hash(body)


def test_jobs_that_cannot_be_listed_stop_each_step(
    run: Run, glacier: StrictGlacier, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.plan(glacier.put(MIXED), whole=True)
    run.until_done(Action.VAULT_DELETE)
    run.run(Action.VAULT_AWAIT_INVENTORY)
    monkeypatch.setattr(GlacierResponse, "list_jobs", lambda *_: (200, {}, "{}"))
    step = run.steps[Action.VAULT_AWAIT_INVENTORY]
    awaiting = Awaiting(VaultWork(run.context, step.id, vault_copy()), AwaitParameters.model_validate(step.parameters))
    for asks in (lambda: run.run(Action.VAULT_RETRIEVE), awaiting._ask, awaiting._fetched):
        with pytest.raises(RunError, match="does not follow the interface of Glacier"):
            asks()


def test_an_unreachable_or_unknown_vault_is_told(run: Run, glacier: StrictGlacier) -> None:
    run.plan(glacier.put(MIXED))
    wrong = run.steps[Action.VAULT_RETRIEVE]
    wrong = wrong.model_copy(update={"parameters": {**wrong.parameters, "vault": "warm"}})
    with pytest.raises(RunError, match="ResourceNotFoundException"):
        run.executor.check(wrong, None)


@pytest.mark.parametrize("told", [True, False])
def test_another_systems_number_is_kept_in_its_column_alone(glacier: StrictGlacier, told: bool) -> None:
    """A driver with the digits of the person's key: without the owner's word the archive cannot be shown to be free."""
    rows = pa.table({"user_id": [int(PERSON), 2, 3], "driver_id": [1, int(PERSON), 4]})
    key = glacier.put(parquet(rows), "trips")
    where = {"dataset": vault_copy().dataset, "location": vault_copy().location}
    word = NotKeys(
        table="t", column="driver_id", labels=("driver_id",), key_sets=("user_id",), owner="R", reason="r", **where
    )
    done = Run(glacier, not_keys=(word,) if told else ())
    done.plan(key)
    done.until_done(Action.VAULT_RETRIEVE)
    if not told:
        with pytest.raises(PartlyDone, match="still contains a value"):
            done.run(Action.VAULT_REWRITE)
        return
    assert done.run(Action.VAULT_REWRITE).facts["rows_dropped"] == 1
