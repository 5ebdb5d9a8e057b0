"""A realistic plan and run, built by hand: 19 copies, 5 beyond, 90-odd steps. Invented throughout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA,
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_PURGE,
    DELTA_VACUUM,
)
from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI,
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_ROWS,
    HUDI_REBUILD_METADATA,
)
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REBUILD,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Format,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.plan import (
    Copy,
    ErasurePlan,
    Estimate,
    Examined,
    Found,
    Gap,
    Override,
    PlannedColumn,
    Schedule,
    Step,
    Totals,
    digest_of,
)
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.model.waivers import Waiver
from reports.run.run_views import (
    Bystanders,
    ByteCheck,
    CopyRun,
    CopyState,
    FormatCheck,
    Holding,
    NaiveLeft,
    NaivePanel,
    Proofs,
    RunState,
    RunView,
    StepRun,
    StepState,
)

NOW = datetime(2026, 11, 7, 9, 30, tzinfo=timezone.utc)
DEADLINE = datetime(2026, 12, 21, 18, 30, tzinfo=timezone.utc)

K, C, F, S = CopyKind, Carries, Format, Strategy

_ICEBERG = (
    (ICEBERG_DELETE_ROWS, False, ("D5",)),
    (ICEBERG_REWRITE_FILES, False, ("I2",)),
    (ICEBERG_REWRITE_MANIFESTS, False, ("I4b",)),
    (ICEBERG_EXPIRE_SNAPSHOTS, True, ("I1", "I4b")),
    (ICEBERG_REMOVE_ORPHANS, True, ("I6",)),
    (Action.VERIFY_COPY, False, ()),
)
_DELTA = (
    (DELTA_DELETE_ROWS, True, ("D5",)),
    (DELTA_PURGE, False, ("D2", "D6")),
    (DELTA_VACUUM, True, ("D1", "D7")),
    (DELTA_CLEAN_LOG, True, ("D4b",)),
    (Action.VERIFY_COPY, False, ()),
)
_HUDI = (
    (HUDI_DELETE_ROWS, True, ("D5",)),
    (HUDI_COMPACT, False, ("H2",)),
    (HUDI_CLEAN, True, ("H1", "H3")),
    (HUDI_REBUILD_METADATA, True, ("H4",)),
    (Action.VERIFY_COPY, False, ()),
)
_FILES = ((Action.FILES_REWRITE, True, ("F1", "F2b", "F3")), (Action.VERIFY_COPY, False, ()))
_ARCHIVE = (
    (Action.S3_RESTORE, False, ("S5",)),
    (Action.S3_REWRITE_ARCHIVE, True, ("S5",)),
    (Action.S3_DELETE_VERSIONS, True, ("S1",)),
    (Action.VERIFY_COPY, False, ()),
)
_VERSIONS = ((Action.S3_DELETE_VERSIONS, True, ("S1",)), (Action.VERIFY_COPY, False, ()))
_REPLICA = (
    (Action.S3_AWAIT_REPLICA, False, ("S2",)),
    (Action.S3_DELETE_VERSIONS, True, ("S2",)),
    (Action.VERIFY_COPY, False, ()),
)
_CHAINS = {ICEBERG: _ICEBERG, DELTA: _DELTA, HUDI: _HUDI}


@dataclass(frozen=True)
class _Seed:
    table: str
    parent: str | None
    kind: CopyKind
    format: Format
    carries: Carries
    strategy: Strategy
    rows: int | None
    start_hours: float = 0.0
    origin: str | None = None


SEEDS = (
    _Seed("lake.prod.users", None, K.SOURCE, ICEBERG, C.KEY, S.DELETE_BY_KEY, 3),
    _Seed("lake.prod.payments", "lake.prod.users", K.DERIVED, ICEBERG, C.KEY, S.DELETE_BY_KEY, 214),
    _Seed("lake.prod.kyc_documents", "lake.prod.users", K.DERIVED, ICEBERG, C.KEY, S.DELETE_BY_KEY, 6),
    _Seed("dl.prod.sessions", "lake.prod.users", K.DERIVED, DELTA, C.KEY, S.DELETE_BY_KEY, 1_482),
    _Seed("dl.prod.devices", "dl.prod.sessions", K.DERIVED, DELTA, C.BRIDGE, S.DELETE_THROUGH_BRIDGE, 5),
    _Seed("hudi.prod.trips", "lake.prod.users", K.DERIVED, HUDI, C.KEY, S.DELETE_BY_KEY, 97),
    _Seed("hudi.prod.trip_ratings", "hudi.prod.trips", K.DERIVED, HUDI, C.BRIDGE, S.DELETE_THROUGH_BRIDGE, 61),
    _Seed("lake.silver.payments_clean", "lake.prod.payments", K.DERIVED, ICEBERG, C.KEY, S.DELETE_BY_KEY, 214),
    _Seed("lake.silver.user_hashes", "lake.prod.users", K.DERIVED, ICEBERG, C.COMPUTED_KEY, S.DELETE_BY_COMPUTED_KEY, 3),
    _Seed("dl.silver.session_facts", "dl.prod.sessions", K.DERIVED, DELTA, C.COMPUTED_KEY, S.DELETE_BY_COMPUTED_KEY, 1_482),
    _Seed("lake.gold.risk_scores", "lake.silver.payments_clean", K.DERIVED, ICEBERG, C.KEY, S.DELETE_BY_KEY, 12),
    _Seed("lake.gold.spend_by_city", "lake.silver.payments_clean", K.DERIVED, ICEBERG, C.AGGREGATE, S.REBUILD, None),
    _Seed("dl.gold.marketing_audience", "lake.silver.user_hashes", K.DERIVED, DELTA, C.COMPUTED_KEY, S.DELETE_BY_COMPUTED_KEY, 2),
    _Seed("/exports/partner/kyc", "lake.prod.kyc_documents", K.DERIVED, F.CSV, C.IDENTIFIERS, S.DELETE_BY_IDENTIFIERS, 6),
    _Seed("/exports/finance/payments", "lake.silver.payments_clean", K.DERIVED, F.PARQUET, C.KEY, S.DELETE_BY_KEY, 214),
    _Seed("/exports/support/tickets", "lake.prod.users", K.DERIVED, F.JSON, C.IDENTIFIERS, S.DELETE_BY_IDENTIFIERS, 4),
    _Seed("dl.dev.sessions_anita", "dl.prod.sessions", K.DEV_CLONE, DELTA, C.KEY, S.DELETE_BY_KEY, 1_482),
    _Seed("lake.dev.payments_copy", "lake.prod.payments", K.DEV_CLONE, ICEBERG, C.KEY, S.DELETE_BY_KEY, 214),
    _Seed("s3://acme-archive/payments/2024", "lake.prod.payments", K.ARCHIVE, F.PARQUET, C.KEY, S.RESTORE_REWRITE_ARCHIVE, 88, 2.0),
    # beyond
    _Seed("lake.prod.payments", "lake.prod.payments", K.TABLE_HISTORY, ICEBERG, C.KEY, S.REWRITE_REF, None, 1.0, "lake.prod.payments"),
    _Seed("dl.prod.sessions", "dl.prod.sessions", K.TABLE_HISTORY, DELTA, C.KEY, S.DELETE_VERSIONS, None, 168.0, "dl.prod.sessions"),
    _Seed("s3://acme-archive/payments/2024", None, K.OBJECT_VERSION, F.PARQUET, C.KEY, S.DELETE_VERSIONS, None, 50.0, "s3://acme-archive/payments/2024"),
    _Seed("s3://acme-archive-hyd/payments/2024", None, K.REPLICA, F.PARQUET, C.KEY, S.DELETE_VERSIONS, None, 52.0, "s3://acme-archive/payments/2024"),
    _Seed("/exports/finance/payments", None, K.BACKUP, F.PARQUET, C.KEY, S.DELETE_VERSIONS, None, 30.0, "/exports/finance/payments"),
)  # fmt: skip


def _dataset(name: str) -> DatasetId:
    if name.startswith("s3://"):
        bucket, _, prefix = name[5:].partition("/")
        return DatasetId(namespace=f"s3://{bucket}", name=prefix)
    path = name if name.startswith("/") else "/warehouse/" + name.replace(".", "/")
    return DatasetId(namespace="file", name=path)


def _id(index: int) -> str:
    return f"copy-{index + 1:02d}"


def _copy(index: int, seed: _Seed) -> Copy:
    by_name = {item.table: _id(at) for at, item in enumerate(SEEDS) if item.origin is None}
    parents = {item.table: item.parent for item in SEEDS if item.origin is None}
    path: list[str] = []
    name: str | None = seed.table
    while name is not None:
        path.insert(0, str(_dataset(name)))
        name = parents.get(name)
    bare = seed.table.startswith(("/", "s3://"))
    dataset = _dataset(seed.table)
    return Copy(
        id=_id(index),
        kind=seed.kind,
        dataset=dataset,
        table=None if bare else seed.table,
        location=seed.table if seed.table.startswith("s3://") else dataset.name,
        format=seed.format,
        carries=seed.carries,
        strategy=seed.strategy,
        columns=(PlannedColumn(name="user_id", category="identifier"), PlannedColumn(name="phone", category="phone")),
        lineage=tuple(path),
        reason=f"user_id reaches this {seed.kind.value.lower()} through {len(path) - 1} hops",
        origin=by_name[seed.origin] if seed.origin else None,
        match=Match(terms=(MatchTerm(column="user_id", key_set="user_id", type="bigint"),)) if seed.rows else None,
        found=Found(files_scanned=40, files_with_person=max(1, (seed.rows or 7) % 23), rows=seed.rows, bytes=4_100_000),
    )


def _chain(seed: _Seed) -> tuple[tuple[Action, bool, tuple[str, ...]], ...]:
    if seed.kind is K.ARCHIVE:
        return _ARCHIVE
    if seed.kind is K.REPLICA:
        return _REPLICA
    if seed.kind in (K.OBJECT_VERSION, K.BACKUP):
        return _VERSIONS
    if seed.kind is K.TABLE_HISTORY:
        chain = _CHAINS[seed.format][2:]
        return ((ICEBERG_REWRITE_REF, True, ("I3",)), *chain) if seed.format is ICEBERG else chain
    if seed.strategy is S.REBUILD:
        return ((ICEBERG_REBUILD, True, ("I1",)), *_ICEBERG[2:])
    return _CHAINS.get(seed.format, _FILES)


def _step(
    number: int, copy: str | None, action: Action, start: datetime, minutes: float, irreversible: bool,
    hazards: tuple[str, ...], after: tuple[str, ...], wait: int = 0,
) -> Step:  # fmt: skip
    finish = start + timedelta(minutes=minutes, seconds=wait)
    return Step(
        id=f"step-{number:03d}",
        copy_=copy,
        action=action,
        executor=action.value.split("_")[0],
        parameters={},
        depends_on=after,
        hazards=hazards,
        preconditions=(),
        verification="no file of this copy holds a key of the persons",
        irreversible=irreversible,
        earliest_start=start,
        earliest_finish=finish,
        latest_start=min(DEADLINE, finish + timedelta(days=20)) - timedelta(minutes=minutes, seconds=wait),
        estimate=Estimate(rows=12, files=3, bytes=2_000_000, cost=19.0, wait=wait),
        reason="the row must leave every file",
    )


def _steps(seeds: tuple[_Seed, ...]) -> tuple[Step, ...]:
    first = _step(1, None, Action.STAGE_KEYS, NOW, 2, False, ("D5",), ())
    steps = [first]
    for index, seed in enumerate(seeds):
        at = NOW + timedelta(hours=seed.start_hours, minutes=5 + 6 * index)
        before = first.id
        for action, irreversible, hazards in _chain(seed):
            wait = 48 * 3600 if action is Action.S3_RESTORE else 0
            at = first.earliest_finish if wait else at
            step = _step(len(steps) + 1, _id(index), action, at, 4, irreversible, hazards, (before,), wait)
            steps.append(step)
            at, before = step.earliest_finish, step.id
    last = max(step.earliest_finish for step in steps)
    steps.append(_step(len(steps) + 1, None, Action.DROP_KEYS, last, 1, True, (), tuple(s.id for s in steps[1:])))
    return tuple(steps)


def example_plan(*, gaps: tuple[Gap, ...] = (), late: bool = False, overridden: bool = True) -> ErasurePlan:
    """The whole example; with gaps it is not complete, `late` moves the deadline before the finish."""
    copies = tuple(_copy(index, seed) for index, seed in enumerate(SEEDS))
    steps = _steps(SEEDS)
    finish = max(step.earliest_finish for step in steps)
    deadline = NOW + timedelta(days=3) if late else DEADLINE
    slack = (deadline - finish).total_seconds() / 86400
    critical = tuple(step.id for step in steps if step.copy_ in {_id(20), _id(3)})
    schedules = (
        Schedule(retention="erasure-window", finish=finish, deadline=deadline, slack_days=slack,
                 meets_deadline=slack >= 0, critical_path=critical, cost=1840.0,
                 notes=("waits 7 days for dl.prod.sessions",)),
        Schedule(retention="table-defaults", finish=NOW + timedelta(days=51), deadline=deadline,
                 slack_days=(deadline - NOW).days - 51.0, meets_deadline=False, critical_path=critical, cost=1310.0,
                 notes=("30 days of Delta log retention after the last VACUUM",)),
    )  # fmt: skip
    open_gaps = sum(gap.waiver is None for gap in gaps)
    return ErasurePlan(
        format_version=2,
        plan_id="plan-7f3c21",
        tool_version="0.1.0",
        created_at=NOW,
        estate="acme-pay",
        retention="erasure-window",
        overrides=(Override(kind="retention.shortened", reason="lake.prod.payments keeps 5 days of snapshots; expiring at once so that the deadline holds"),) if overridden else (),
        requests=(PlannedRequest(id="REQ-2026-0417", subject="hmac:6b1f…c2", law="DPDP", citation="DPDP Act 2023 §12(3), §8(7)", received=NOW - timedelta(days=1), deadline=deadline),),
        graph_digest=digest_of(b"g"), inventory_digest=digest_of(b"i"), policy_digest=digest_of(b"p"),
        subjects_digest=digest_of(b"s"), estate_digest=digest_of(b"e"),
        complete=open_gaps == 0,
        applyable=open_gaps == 0,
        gaps=gaps,
        copies=copies,
        examined=(
            Examined(dataset=_dataset("lake.gold.daily_totals"), table="lake.gold.daily_totals", carries=C.AGGREGATE, reason="counts over at least 500 people; no key of a person, k-anonymous by its query"),
            Examined(dataset=_dataset("lake.ref.currencies"), table="lake.ref.currencies", carries=C.NONE, reason="no path from any identifying column"),
            Examined(dataset=_dataset("dl.prod.merchants"), table="dl.prod.merchants", carries=C.NONE, reason="merchant_id has another origin than user_id"),
        ),
        steps=steps,
        schedules=schedules,
        totals=Totals(copies=19, beyond=5, steps=len(steps), irreversible=sum(s.irreversible for s in steps),
                      gaps=len(gaps), waived=len(gaps) - open_gaps, finish=finish, deadline=deadline,
                      slack_days=slack, cost=1840.0, currency="INR", critical_path=critical),
    )  # fmt: skip


def example_gaps() -> tuple[Gap, ...]:
    """One open, one waived."""
    return (
        Gap(id="gap-01", dataset=_dataset("lake.prod.loans"), kind="lineage", reason="job loans_refresh writes this table with a statement that could not be resolved", evidence="jobs/loans_refresh.sql:41"),
        Gap(id="gap-02", dataset=None, kind="s3_bucket", reason="bucket acme-scratch could not be listed", evidence="AccessDenied on ListObjectVersions",
            waiver=Waiver(who="Meera Iyer", why="scratch bucket expires after 7 days", until=DEADLINE)),
    )  # fmt: skip


def example_edges() -> tuple[tuple[str, str], ...]:
    """Lineage between the datasets of the example."""
    pairs = [(seed.parent, seed.table) for seed in SEEDS if seed.parent and seed.origin is None]
    pairs += [
        ("lake.prod.users", "lake.silver.payments_clean"),
        ("lake.gold.risk_scores", "dl.gold.marketing_audience"),
    ]
    return tuple((_dataset(a).name, _dataset(b).name) for a, b in pairs)


def example_run(*, state: RunState = RunState.COMPLETE) -> RunView:
    """A run of the example plan."""
    plan = example_plan()
    names = {copy.id: copy for copy in plan.copies}
    copies = tuple(_copy_run(copy, plan) for copy in names.values())
    return RunView(
        plan_id=plan.plan_id, estate=plan.estate, tool_version="0.1.0", requests=("REQ-2026-0417",),
        subjects=("hmac:6b1f…c2",), state=state, started=NOW, finished=NOW + timedelta(minutes=6, seconds=41),
        deadline=DEADLINE, copies=copies, rows_erased=5_599, bystander_rows_lost=0,
        naive=NaivePanel(
            statement="DELETE FROM lake.prod.payments WHERE user_id = ?", rows_seen_after=0,
            left=(
                NaiveLeft(dataset="lake.prod.payments", place="older snapshots", files=12, example="data/dt=2026-10-02/00003-7.parquet", hazard="I1"),
                NaiveLeft(dataset="lake.prod.payments", place="branch audit_2025", files=9, example="data/dt=2025-12-31/00001-2.parquet", hazard="I3"),
                NaiveLeft(dataset="lake.prod.payments", place="manifest bounds", files=4, example="metadata/5f0c-m0.avro", hazard="I4b"),
                NaiveLeft(dataset="dl.prod.sessions", place="Delta log statistics", files=7, example="_delta_log/00000000000000000007.json", hazard="D4b"),
                NaiveLeft(dataset="s3://acme-archive/payments/2024", place="noncurrent object versions", files=16, example="part-0004.parquet", hazard="S1"),
            )),
        bytes_checked=ByteCheck(
            formats=(FormatCheck(what="Parquet", files=612, bytes=48_300_000), FormatCheck(what="Avro manifest", files=94, bytes=1_200_000),
                     FormatCheck(what="Delta log JSON", files=71, bytes=830_000), FormatCheck(what="CSV", files=12, bytes=210_000)),
            forms=("plain text", "sha2-256 of the number", "sha2-256 of the lower-case e-mail", "16-character prefix"),
            other_meaning=("lake.prod.payments.merchant_id holds the same digits in 2 files; lineage shows another origin (merchants.id)",)),
        bystanders=tuple(
            Bystanders(dataset=seed.table, rows_before=10_000 + 37 * at, rows_after=10_000 + 37 * at, checksum_before=f"{at:02d}a9c3f4e7", checksum_after=f"{at:02d}a9c3f4e7")
            for at, seed in enumerate(SEEDS[:11])),
        proofs=Proofs(plan_digest=plan.inventory_digest, approved_by="Ravi Menon", merkle_root=digest_of(b"root"), log_entries=len(plan.steps),
                      deletion_log=".pii-tracer/demo/deletion-log.jsonl", attestation=".pii-tracer/demo/attestation.json", report=".pii-tracer/demo/report.html"),
        limits=("Copies that neither lineage nor the estate file names cannot be seen from here.",
                "Bytes freed inside a disk or a cloud provider's own backups are outside what any reader can check."),
        demo=True,
    )  # fmt: skip


def _copy_run(copy: Copy, plan: ErasurePlan) -> CopyRun:
    steps = []
    for at, step in enumerate(s for s in plan.steps if s.copy_ == copy.id):
        start = NOW + timedelta(seconds=int(copy.id[-2:]) * 15 + at * 3)
        steps.append(
            StepRun(id=step.id, action=step.action, state=StepState.DONE, irreversible=step.irreversible, started=start,
                    finished=start + timedelta(seconds=2.4), snapshot_before="4417029385511274655", snapshot_after="8830174529914470211",
                    note="3 files rewritten")
        )  # fmt: skip
    assert copy.found is not None
    return CopyRun(
        id=copy.id, kind=copy.kind, dataset=copy.dataset, table=copy.table, location=copy.location, format=copy.format,
        strategy=copy.strategy, state=CopyState.ERASED, before=Holding(files=copy.found.files_with_person, rows=copy.found.rows),
        after=Holding(files=0, rows=None if copy.found.rows is None else 0), files_decoded=32, origin=copy.origin, steps=tuple(steps),
    )  # fmt: skip
