"""The attestation of a run: what is gone, what was looked at, and who signs it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pii_tracer import __version__
from pii_tracer.app import vault_verification
from pii_tracer.app.execution.plan_run import Ran
from pii_tracer.app.execution.run_verification import facts_of, now
from pii_tracer.app.proof.own_attestation import attestation_findings
from pii_tracer.config.proof import TimestampAuthority
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.gap_kinds import UNREAD_AS_A_WHOLE
from pii_tracer.model.locations import object_uri
from pii_tracer.model.plan import STAYS, ErasurePlan, Step
from pii_tracer.proof.attestation import (
    JOURNAL,
    LEAVES,
    Attestation,
    Basis,
    Others,
    Proven,
    basis_of,
)
from pii_tracer.proof.attestation_issuing import publish, recover
from pii_tracer.proof.attestation_log import LOG_NAME, AttestationLog, History
from pii_tracer.proof.attester_keys import attester
from pii_tracer.proof.evidence_leaves import (
    Erased,
    Reserved,
    ReservedKind,
    ScopeFile,
    bodies_in,
    nonces_in,
)
from pii_tracer.proof.open_requests import OpenRequest, open_in
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, salts_in
from pii_tracer.proof.storage_change_witness import (
    BY_VERSION,
    FileBefore,
    before_place,
    before_step,
    gone_files,
    read_before,
)
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import State
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, RunVerdict

_TOOLS = ("pyspark", "sqlglot", "openlineage-python", "confluent-kafka", "protobuf")
"""Libraries whose versions attestations tell, besides those of the table formats."""


def attest_run(
    ran: Ran, verdict: RunVerdict, elsewhere: Sequence[ByteVerdict], still: Sequence[OpenRequest] = ()
) -> Path | None:
    """The attestation of a finished run; None while anything is open or left, but for requests that stay open alone.

    It is signed once, however many requests the plan answers. still: requests that stay open, each with every place in
    which something of its person is left.
    """
    explained, stays = {item.place for item in still}, {item.request for item in still}
    residue = [*verdict.residue, *(r for v in elsewhere for r in v.residue)]
    left = [item for item in residue if item.copy_id not in explained]
    harmed = verdict.bystander_rows_lost or not verdict.checksum_equal
    undone = not ran.loaded.plan.complete or ran.state.state is not State.COMPLETE
    if undone or left or verdict.unverified or harmed:
        return None
    folder, plan_id = ran.folder, ran.loaded.plan.plan_id
    if all(request.id in stays for request in ran.loaded.plan.requests):
        return None
    log = AttestationLog(Path(ran.info.state) / LOG_NAME)
    recover(folder.attestation, log, plan_id)
    kept = _kept(ran, still)
    if not kept or attestation_findings(folder) != ():
        proven = _proven(ran, verdict, elsewhere, still)
        _publish(ran, basis_of(proven, nonce=_nonces(ran, kept), salt=_salts(ran)), log)
    return folder.attestation


def _publish(ran: Ran, basis: Basis, log: AttestationLog) -> None:
    estate, base = ran.verification.estate, ran.folder.settings().base
    local = estate.environment == "local"
    key = attester(estate.attestation_key, base, Path(ran.info.state), local=local)
    stamp = _stamp(estate.timestamp_authority, base)

    def make(history: History) -> Attestation:
        return basis.sealed(history, key)

    publish(make, ran.folder.attestation, ran.folder.evidence, log, ran.loaded.plan.plan_id, stamp)


def _kept(ran: Ran, still: Sequence[OpenRequest]) -> bool:
    """Whether the evidence is of this very journal, while the same requests stayed open: a finished plan that is run
    again keeps its proof."""
    try:
        if (ran.folder.evidence / JOURNAL).read_bytes() != ran.folder.journal.read_bytes():
            return False
        return open_in(bodies_in(_evidence(ran, LEAVES))) == set(still)
    except (OSError, ValueError):
        return False


def _evidence(ran: Ran, name: str) -> bytes:
    """A file of the evidence that is there already; no bytes where there is none."""
    try:
        return (ran.folder.evidence / name).read_bytes()
    except FileNotFoundError:
        return b""


def _nonces(ran: Ran, known: bool) -> Callable[[], str]:
    """Those of the leaves that are there, so that these come out the same again; then, and without any, new ones."""
    rest = iter(nonces_in(_evidence(ran, LEAVES)) if known else ())
    return lambda: next(rest, None) or secrets.token_hex(16)


def _salts(ran: Ran) -> Callable[[str], str]:
    """By the request's id. One that has a salt keeps it, so that its leaf stays what it was; no nonce becomes one."""
    kept = salts_in(_evidence(ran, REQUESTS))
    return lambda request: kept.get(request) or secrets.token_hex(16)


def _proven(ran: Ran, verdict: RunVerdict, elsewhere: Sequence[ByteVerdict], still: Sequence[OpenRequest]) -> Proven:
    authority = ran.verification.estate.timestamp_authority
    return Proven(
        loaded=ran.loaded,
        journal=ran.folder.journal.read_bytes(),
        approvals=[Path(p).read_bytes() for p in ran.info.approvals],
        confirmations=[p.read_bytes() for p in sorted(ran.folder.confirmations.glob("*.json"))],
        scope=_scope(ran.loaded.plan, verdict, elsewhere),
        scanned_at=now(),
        clean=frozenset((*verdict.erased, *verdict.erased_of_others)),
        erased=erased_by(ran, verdict),
        exceptions=who_answers(elsewhere, ran.loaded.plan),
        not_asked=[*verdict.not_asked, *(told for seen in elsewhere for told in seen.not_asked)],
        reading=verdict.reading,
        still=still,
        tools=_tools(),
        authority=authority.url if authority else None,
        others=Others(
            compared=sum(copy.bystanders is not None for copy in verdict.copies),
            rows_lost=verdict.bystander_rows_lost,
            changed=sum(copy.bystanders is not None and not copy.bystanders.equal for copy in verdict.copies),
        ),
    )


def who_answers(elsewhere: Sequence[ByteVerdict], plan: ErasurePlan) -> list[Reserved]:
    """What is no copy of the plan, was looked at all the same, and could not be read; with who answers for it, where
    planning could not read the same bytes either and a named person waived that. Nobody answers for other bytes.

    Of a place of which planning could read nothing, the waiver is about the whole, as long as that is still so."""
    waived = [(gap.dataset or gap.evidence, gap) for gap in plan.gaps if gap.waiver and not gap.task]
    by_mark = {(place, mark): gap.waiver for place, gap in waived for mark in gap.unread}
    whole = {place: gap.waiver for place, gap in waived if gap.kind in UNREAD_AS_A_WHOLE and not gap.unread}
    found = []
    for verdict in elsewhere:
        place, seen = verdict.place, zip_longest(verdict.unread_as_waived, verdict.marks_waived)
        known = [(reason, by_mark.get((place, mark)) if place and mark else None) for reason, mark in seen]
        still = whole.get(place) if place and not verdict.files else None
        for reason, waiver in (*((reason, still) for reason in verdict.unverified), *known):
            who, until = (waiver.who, iso(waiver.until)) if waiver else (None, None)
            kind = ReservedKind.UNVERIFIED
            found.append(Reserved(kind=kind, what=verdict.copy_id, why=reason, who=who, until=until))
    return found


def _scope(plan: ErasurePlan, verdict: RunVerdict, elsewhere: Sequence[ByteVerdict]) -> list[ScopeFile]:
    """The files of the copies. Where an earlier run left no copy, what was searched is all the rest."""
    if not plan.copies:
        return [file for seen in elsewhere for file in _files_of(seen)]
    return [file for copy in verdict.copies for file in scope_of(copy)]


def scope_of(copy: CopyVerdict) -> list[ScopeFile]:
    """The files of a copy that were searched."""
    return _files_of(copy.bytes) if copy.bytes else []


def _files_of(seen: ByteVerdict) -> list[ScopeFile]:
    return [ScopeFile(path=f"{seen.copy_id}/{file.path}", sha256=file.sha256) for file in seen.files]


def _stamp(authority: TimestampAuthority | None, base: Path) -> Callable[[bytes], bytes] | None:
    if authority is None:
        return None
    from pii_tracer.proof.rfc3161_timestamps import load_certificates, request_stamp

    roots = load_certificates(base / authority.certificate)
    return lambda data: request_stamp(authority.url, data, roots)


def erased_by(ran: Ran, verdict: RunVerdict) -> list[Erased]:
    """Everything that is gone: each copy, each object version, each file with its hash before.

    A file is gone when it stood in the copy's folder before the first act and the verifier did not find it there; a
    version of a table in S3 also when it was there before old versions were cleared.
    """
    plan, folder = ran.loaded.plan, ran.folder.path
    found = [Erased(copy_id=c.id, uri=c.location) for c in plan.copies if c.strategy not in STAYS]
    hashed = set()
    for seen in verdict.copies:
        before = read_before(before_place(folder, seen.copy_id))
        if plan.copy_by_id(seen.copy_id).s3_table:
            found += _versions_of_table(ran, seen, before)
            continue
        now = [ScopeFile(path=f.path, sha256=f.sha256) for f in seen.bytes.files] if seen.bytes else []
        hashed |= {seen.copy_id} if before else set()
        for file in gone_files(before, now):
            uri = f"{plan.copy_by_id(seen.copy_id).location}/{file.path}"
            found.append(Erased(copy_id=seen.copy_id, uri=uri, sha256=file.sha256))
    facts = step_facts(ran.records)
    tables = {copy.id for copy in plan.copies if copy.s3_table}
    for step in plan.steps:
        if step.copy_ in tables:
            continue
        found += _objects_gone(step, facts.get(step.id, {}), ran)
        found += vault_verification.archives_gone(step, lambda name: facts_of(ran.records, name))
        if step.copy_ not in hashed:
            found += _rewritten(step, facts.get(step.id, {}))
    return found


def _versions_of_table(ran: Ran, seen: CopyVerdict, before: Sequence[FileBefore]) -> Iterator[Erased]:
    """The versions of a table in S3 that are gone.

    One that S3 gave an id is named with it, so that a trail must show its deletion; not where values in its name are
    masked, nor `null`, which table formats remove by themselves: no record could be found by these.
    """
    plan, folder = ran.loaded.plan, ran.folder.path
    known = {item.path: item for item in before}
    for step in plan.steps:
        if step.copy_ == seen.copy_id and step.action in BY_VERSION:
            known = {item.path: item for item in read_before(before_step(folder, step.id))} | known
    there = {file.path: file.sha256 for file in seen.bytes.files} if seen.bytes else {}
    masks = [f"[{keys.name}]" for keys in ran.verification.keys]
    for item in known.values():
        path, _, version = item.path.rpartition("?versionId=")
        if item.path in there and (version != "null" or there[item.path] == item.sha256):
            continue
        exact = version != "null" and not any(mask in path for mask in masks)
        uri = f"{plan.copy_by_id(seen.copy_id).location}/{path if exact or version == 'null' else item.path}"
        yield Erased(copy_id=seen.copy_id, uri=uri, version_id=version if exact else None, sha256=item.sha256)


def _objects_gone(step: Step, known: dict[str, Any], ran: Ran) -> Iterator[Erased]:
    bucket = step.parameters.get("bucket")
    if not bucket:
        return
    before = {item.path: item.sha256 for item in read_before(before_step(ran.folder.path, step.id))}
    for item in _versions_gone(step, known):
        sha256 = item.get("sha256")
        if sha256 is None and before:
            name = ran.verification.patterns.mask(item["key"])
            sha256 = before.get(f"{name}?versionId={item['version_id']}")
        uri = object_uri(bucket, item["key"])
        yield Erased(copy_id=step.copy_ or "", uri=uri, version_id=item["version_id"], sha256=sha256)


def _rewritten(step: Step, known: dict[str, Any]) -> Iterator[Erased]:
    """Files that a step says it wrote again, where the folder was not hashed before."""
    files = known.get("files")
    for item in files if isinstance(files, list) else ():
        uri = f"{step.parameters['location']}/{item['file']}"
        yield Erased(copy_id=step.copy_ or "", uri=uri, sha256=item["sha256_before"])


def _versions_gone(step: Step, known: dict[str, Any]) -> list[dict[str, Any]]:
    """The versions of a deletion step that are gone: those that an earlier, interrupted attempt deleted count too.

    The step was verified, so every listed version is gone that was neither spared nor replaced in place.
    """
    if step.action is not Action.S3_DELETE_VERSIONS or "spared" not in known:
        return list(known.get("deleted", ()))
    kept = {(i["key"], i["version_id"]) for name in ("spared", "replaced_in_place") for i in known[name]}
    return [item for item in step.parameters["versions"] if (item["key"], item["version_id"]) not in kept]


def _tools() -> dict[str, str]:
    found = {"pii-tracer": __version__}
    for name in (*_TOOLS, *(library for one in table_formats() for library in one.libraries)):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


_ANSWERS = (Kind.STEP_RESULT, Kind.STEP_FAILED, Kind.STEP_WAITING)


def step_facts(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """The facts of each step's last answer; objects that an earlier attempt deleted, which failed or waits for the
    rest, are among them."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if record.kind not in _ANSWERS or not record.facts.get("facts"):
            continue
        step, facts = str(record.facts["step"]), dict(record.facts["facts"])
        before, now = found.get(step, {}).get("deleted"), facts.get("deleted", [])
        if record.kind is Kind.STEP_WAITING:
            if not isinstance(now, list) or not now:
                continue
            facts = {**found.get(step, {}), "deleted": now}
        if isinstance(before, list) and isinstance(now, list):
            facts["deleted"] = [*before, *now]
        found[step] = facts
    return found
