"""A state folder with something of everything in it, values of a person planted where none may be shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pii_tracer.app.estate_readiness import trend_file
from pii_tracer.app.execution.run_folder import RunFolder, RunInfo, folder_of
from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import laws_of
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import EdgeType, Evidence, LineageGap, Subtype
from pii_tracer.lineage.graph.graph_file import save
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import ErasurePlan, Gap, digest_of
from pii_tracer.readiness.estate_snapshot import Coverage, EstateState, TableFacts
from pii_tracer.readiness.findings import Finding, FindingKind, Level
from pii_tracer.readiness.readiness_reading import Given, assess
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.journal import Journal, Kind
from tests.lineage.graphs import NASTY, ds, edge
from tests.proof.attested import attest
from tests.proof.test_attestation import KEY, nonces, proven
from tests.review.plans import copy, plan
from tests.review.test_review import approved

MAIL, PHONE = "mira.okafor@north.example", "+44 7700 900123"
PLANTED = (MAIL, PHONE, "mira.okafor")
MARKUP = '<img src=x onerror="alert(1)">'


def gap(number: int, **more: Any) -> Gap:
    fields = {"dataset": ds(f"/lake/t{number}"), "reason": "the file cannot be decoded", "evidence": f"f-{number}"}
    return Gap(id=f"g{number}", kind=GapKind.UNREADABLE, **fields | more)


@dataclass(frozen=True)
class Place:
    """The state folder. ready, stuck, broken: names of plan files."""

    base: Path

    @property
    def settings(self) -> Settings:
        return Settings(self.base / "pii-tracer.yaml", self.base / "state")

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def plans(self) -> Path:
        return self.state / "plans"

    def plan(self, name: str, made: ErasurePlan) -> Path:
        self.plans.mkdir(parents=True, exist_ok=True)
        path = self.plans / f"{name}.plan.json"
        path.write_bytes(made.to_bytes())
        return path

    def run(self, made: ErasurePlan) -> RunFolder:
        path = self.plan(made.plan_id, made)
        folder = folder_of(self.state, made.plan_id)
        folder.write_info(
            RunInfo(
                plan_id=made.plan_id, plan_digest=digest_of(made.to_bytes()), policy_file="p", approvals=(),
                trusted=None, state="", plan_file=str(path), estate_file=str(self.base / "pii-tracer.yaml"),
            )
        )  # fmt: skip
        Journal.open(folder.journal).append(Kind.RUN_STARTED, plan_digest=digest_of(made.to_bytes()))
        return folder

    def readings(self, scores: int = 3, tables: int = 40) -> None:
        folder = self.state / trend_file.FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        kinds = list(Coverage)
        facts = tuple(
            TableFacts(f"lake.s{n % 7}.t{n:05}", f"/w/{n}", "sales", kinds[n % 4], (("id", "bigint"),), ("id",))
            for n in range(tables)
        )
        gdpr = {name: law for name, law in laws_of(()).items() if name == "GDPR"}
        for number in range(1, scores + 1):
            at = datetime(2026, 11, 20 + number, tzinfo=timezone.utc)
            found = [Finding(FindingKind.GAP, Level.BLOCKING, f"t{n}", "sales", "no way") for n in range(4 - number)]
            before = trend_file.read(folder)
            given = Given("shop", at, EstateState(number, at.isoformat(), facts), found, laws=gdpr)
            made, state = assess(given, before.last, before.points)
            trend_file.append(folder, before, made, state)

    def lineage(self) -> None:
        sql = edge(
            "/lake/users", "/lake/mails", expression=f"CASE WHEN users.k = '{MAIL}' THEN 1 ELSE k END",
            type=EdgeType.DIRECT, subtype=Subtype.TRANSFORMATION,
            evidence=(Evidence(source="sql", where="jobs.sql:3", job="mails"),),
        )  # fmt: skip
        edges = [sql, edge("/raw/events", "/lake/users"), edge("/lake/mails", "/lake/report", masking=True)]
        edges += [edge("/lake/mails", NASTY), edge("/lake/users", "/lake/users_copy", "mail")]
        edges += [edge("/lake/report", f"/mart/wide_{n:03}") for n in range(20)]
        gaps = [
            LineageGap(dataset=ds("/lake/mails"), kind="no_columns", reason="why", evidence="e:1", closes="say it"),
            LineageGap(dataset=None, kind="sql_partial", reason="a script has no names", evidence="x.sql:9"),
        ]
        schemas = {ds("/lake/users"): (Column(name="k", type="bigint"), Column(name="mail", type="string"))}
        facts = collect(edges, [], [], gaps, schemas, {"lake.users": ds("/lake/users")})
        save(LineageGraph(facts), self.state / "lineage.graph")


def place(base: Path) -> Place:
    """Everything: plans in order, blocked and broken; runs of each kind; readings; a proof; lineage."""
    made = Place(base)
    (base / "pii-tracer.yaml").write_text("version: 1\n")
    ready = plan(plan_id="plan-ready", copies=[copy(f"c{n}", table=f"lake.t{n}") for n in range(5)])
    made.plan("ready", ready)
    now = datetime.now(timezone.utc)
    lives = {"now": now, "expires": now + timedelta(hours=24), "reason": f"asked by {MAIL}"}
    loaded = parse_plan(ready.to_bytes(), "ready.plan.json")
    (made.plans / "ready.approval-asha.json").write_bytes(approved(loaded, **lives))
    (made.plans / "ready.approval-other.json").write_bytes(approved(**lives))
    (made.plans / "ready.approval-broken.json").write_bytes(b"{" + MAIL.encode())
    made.plan("stuck", plan(plan_id="plan-stuck", gaps=[gap(n) for n in range(120)]))
    made.plan("marked", plan(plan_id="plan-marked", estate=MARKUP, gaps=[gap(1, reason=f"{MARKUP}\x1b[31m\u202e")]))
    whole = ready.to_bytes()
    (made.plans / "half.plan.json").write_bytes(whole[: len(whole) // 2] + MAIL.encode())
    edited = whole.replace(b'"plan_id"', f'"{MAIL}": 1, "plan_id"'.encode())
    (made.plans / f"{MARKUP.replace('/', '')}.plan.json").write_bytes(edited)
    Path(os.fsdecode(os.fsencode(made.plans) + b"/odd-\xff\xfe.plan.json")).write_bytes(
        plan(plan_id="plan-odd").to_bytes()
    )
    (made.plans / "ready.subjects.sealed").write_text(MAIL)

    failed = made.run(plan(plan_id="plan-failed"))
    journal = Journal.open(failed.journal)
    journal.append(Kind.STEP_INTENT, step="c1/1", secret=MAIL)
    journal.append(Kind.STEP_FAILED, step="c1/1", reason="the table is locked", hint=PHONE)
    journal.append(Kind.RUN_FINISHED, state="partial")
    failed.result.write_text(f'{{"state": "partial", "residue": [], "note": "{MAIL}"}}')
    residue = made.run(plan(plan_id="plan-residue"))
    Journal.open(residue.journal).append(Kind.RUN_FINISHED, state="partial")
    residue.result.write_text(
        f'{{"state": "residue", "residue": [{{"copy": "c1", "file": "part-0.parquet", "form": "{MAIL}"}}]}}'
    )
    killed = made.run(plan(plan_id="plan-killed"))
    Journal.open(killed.journal).append(Kind.STEP_INTENT, step="c1/1")
    (made.state / "runs" / f"no-run {MARKUP.replace('/', '')}").mkdir()
    done = made.run(plan(plan_id="plan-1"))
    journal = Journal.open(done.journal)
    for step in ("c1/1", "c1/2"):
        journal.append(Kind.STEP_VERIFIED, step=step)
    journal.append(Kind.RUN_FINISHED, state="complete")
    done.result.write_text('{"state": "complete", "residue": []}')
    (base / "proven").mkdir()
    attested = attest(proven(base / "proven"), KEY, nonce=nonces())
    attested.write_evidence(done.evidence)
    done.attestation.write_bytes(attested.envelope)
    torn = made.state / "runs" / "plan-failed" / "attestation.json"
    torn.write_bytes(done.attestation.read_bytes()[:200])
    made.readings()
    made.lineage()
    return made
