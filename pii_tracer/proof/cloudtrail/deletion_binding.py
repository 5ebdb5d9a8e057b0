"""Binds every object version that an attestation calls gone to the record of its deletion, and each record to the plan.

A version is bound by bucket, key, version and a request id that the run's journal holds. Where the log names only the
call, as it did of old, the version is bound to the call, and the report says how many are. A record that the plan does
not explain is a finding of its own: somebody may have lost data that was not the person's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from pii_tracer.common.plurals import counted
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.model.locations import is_s3
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.cloudtrail.deletion_events import Deletion, Source, access_log_deletions
from pii_tracer.proof.cloudtrail.digest_chain import load_keys, read_trail
from pii_tracer.proof.findings import Check, ProofFinding, Report
from pii_tracer.proof.untrusted_json import canonical_object, read_limited, split_lines
from pii_tracer.review.plan_file import parse_plan
from pii_tracer.run.journal import Kind, Record, parse

_SHOWN = 20
"""Findings of one kind that are told one by one; the rest is counted."""


@dataclass(frozen=True)
class Claim:
    """An object version that is said to be gone."""

    bucket: str
    key: str
    version_id: str


@dataclass(frozen=True)
class Claims:
    """What evidence says about S3: what is gone, by which requests, when, and where the plan was at work.

    strict: prefixes (bucket, prefix) whose every deletion the plan lists. tables: prefixes where table formats remove
    files by themselves. unlisted: S3 places that were erased without a list of versions.
    """

    gone: tuple[Claim, ...]
    requests: frozenset[str]
    begin: datetime
    end: datetime
    strict: tuple[tuple[str, str], ...]
    tables: tuple[tuple[str, str], ...]
    unlisted: int


def check_trail(evidence: Path, folder: Path | None, keys: bytes, access_logs: Path | None = None) -> Report:
    """Check the logs of S3 against an evidence folder (which `verify_attestation` must have checked before).

    Args:
        folder: a trail's files, with the public keys in `keys`. access_logs: a folder of server access logs.

    Raises:
        ProofError: the keys cannot be read.
    """
    try:
        claims = read_claims(evidence)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, PiiTracerError):
        return Report((ProofFinding(Check.FORM, "the evidence about S3 cannot be read"),))
    findings: list[ProofFinding] = []
    notes: list[str] = []
    records: list[Deletion] = []
    if folder is not None:
        trail = read_trail(folder, load_keys(keys))
        findings += trail.findings
        notes += trail.notes
        findings += _covered(trail.spans, claims)
        records += trail.deletions
    if access_logs is not None:
        records += _access_records(access_logs, notes)
    bound = bind(claims, records)
    return Report((*findings, *bound.findings), (*notes, *bound.notes))


def read_claims(evidence: Path) -> Claims:
    """What the evidence folder says about S3. Raises as reading and parsing do; the folder was checked before."""
    plan = parse_plan(read_limited(evidence / "plan.json"), "plan.json").plan
    records, _ = parse(read_limited(evidence / "journal.jsonl"))
    bodies = [canonical_object(line) or {} for line in split_lines(read_limited(evidence / "leaves.jsonl"))]
    erased = [b for b in bodies if b.get("kind") == "erased" and is_s3(str(b.get("uri")))]
    listed = {step.copy_ for step in plan.steps if "bucket" in step.parameters}
    archives = (copy for copy in plan.copies if copy.id in listed and copy.s3_table is None)  # engines list no deletion
    strict = {_split(copy.location) for copy in archives if is_s3(copy.location)}
    inside = {
        b["copy_id"] for b in erased if b.get("version_id") is None and not _below(*_split(str(b["uri"])), strict)
    }
    return Claims(
        gone=tuple(Claim(*_split(str(b["uri"])), str(b["version_id"])) for b in erased if b.get("version_id")),
        requests=frozenset(_requests(records)),
        begin=records[0].time.replace(microsecond=0),  # the logs have whole seconds
        end=records[-1].time,
        strict=tuple(sorted(strict)),
        tables=tuple(sorted(_tables(plan, strict))),
        unlisted=len(inside),
    )


@dataclass
class _Binding:
    """How far the binding has come. ways: versions bound by each source; None: to a call that names no object."""

    claims: Claims
    named: dict[tuple[str, str, str], list[Deletion]]
    calls: set[tuple[str, str]]
    explained: set[Deletion]
    ways: Counter[Source | None]
    by_identity: int = 0

    def bind(self, claim: Claim) -> bool:
        """Bind one version to a record of a request of the run, to a lifecycle rule, or to a call."""
        found = self.named.get((claim.bucket, claim.key, claim.version_id), [])
        ours = [r for r in found if r.source is Source.LIFECYCLE or r.request_id in self.claims.requests]
        self.explained.update(ours)
        if ours:
            self.ways[min((r.source for r in ours), key=list(Source).index)] += 1
        elif not found and any((claim.bucket, request) in self.calls for request in self.claims.requests):
            self.ways[None] += 1
        else:
            return False
        return True

    def why_not(self, claim: Claim, identities: frozenset[str]) -> str | None:
        """Why a version is bound to nothing; None where the run's own identity deleted it while it ran.

        That is how a crash between the call and the journal's record looks: the version is listed in the plan, and the
        journal does not hold the request.
        """
        found = self.named.get((claim.bucket, claim.key, claim.version_id), [])
        if not found:
            return f"{claim.bucket}: no record of the deletion of version {claim.version_id}"
        for record in found:
            if record.identity in identities and self.claims.begin <= record.time <= self.claims.end:
                self.explained.add(record)
                self.by_identity += 1
                return None
        return f"{claim.bucket}: a request that does not belong to the run deleted a version ({found[0].where})"


def bind(claims: Claims, records: Sequence[Deletion]) -> Report:
    """Bind claims to records and records to claims."""
    named: dict[tuple[str, str, str], list[Deletion]] = {}
    for record in records:
        for key in record.keys:
            # without a version a request only hides the object behind a delete marker; that is nobody's deletion
            named.setdefault((record.bucket, key, record.version_id or ""), []).append(record)
    calls = {(record.bucket, record.request_id) for record in records if not record.keys}
    binding = _Binding(claims, named, calls, set(), Counter())
    left = [claim for claim in claims.gone if not binding.bind(claim)]
    identities = frozenset(r.identity for r in binding.explained if r.source is Source.CLOUDTRAIL) - {""}
    unmatched = [why for claim in left if (why := binding.why_not(claim, identities))]
    strange, upkeep, others = _unexplained(claims, records, binding.explained, identities)
    findings = (*_told(Check.UNMATCHED_DELETION, unmatched), *_told(Check.UNEXPLAINED_DELETION, strange))
    return Report(findings, tuple(_notes(binding, upkeep, others)))


def _unexplained(
    claims: Claims, records: Iterable[Deletion], explained: set[Deletion], identities: frozenset[str]
) -> tuple[list[str], int, int]:
    """Records that nothing explains; and how many are a table's own upkeep, or elsewhere and by others."""
    buckets = {bucket for bucket, _ in (*claims.strict, *claims.tables)} | {claim.bucket for claim in claims.gone}
    strange: list[str] = []
    upkeep = others = 0
    for record in records:
        if record in explained or record.bucket not in buckets or not claims.begin <= record.time <= claims.end:
            continue
        if not record.keys and record.request_id in claims.requests:
            continue  # the run's own call; its objects stand in records of their own, or are bound to it
        if record.source is Source.LIFECYCLE:
            others += 1
        elif record.keys and any(_below(record.bucket, key, claims.tables) for key in record.keys):
            upkeep += 1
        elif record.request_id in claims.requests:
            strange.append(
                f"a request of the run deleted an object that the attestation does not list ({record.where})"
            )
        elif any(_below(record.bucket, key, claims.strict) for key in record.keys):
            strange.append(
                f"an unplanned object was deleted in a place where the plan lists every deletion ({record.where})"
            )
        elif record.identity in identities:
            strange.append(f"the run's identity deleted an object that the plan does not list ({record.where})")
        else:
            others += 1
    return strange, upkeep, others


def _notes(binding: _Binding, upkeep: int, others: int) -> Iterator[str]:
    claims, ways = binding.claims, binding.ways
    if not claims.gone:
        yield "the attestation names no object version: there is no deletion on S3 to bind"
    if ways[None]:
        yield (
            f"{counted(ways[None], 'version is', 'versions are')} bound to a"
            " DeleteObjects call whose record names no object "
            "(server access logs would name them)"
        )
    if ways[Source.ACCESS_LOG]:
        yield (
            f"{counted(ways[Source.ACCESS_LOG], 'version is', 'versions are')} bound only by access logs, which are "
            "not signed"
        )
    if ways[Source.LIFECYCLE]:
        yield (
            f"{counted(ways[Source.LIFECYCLE], 'version was', 'versions were')} removed"
            " by a lifecycle rule, as access logs alone can show"
        )
    if binding.by_identity:
        yield (
            f"{counted(binding.by_identity, 'version was', 'versions were')} deleted by the run's identity while it "
            "ran, under a request that is not in the journal (as after a crash between call and record)"
        )
    if claims.unlisted:
        yield f"not checked: deletions below {counted(claims.unlisted, 'place')} where a table format removes files"
    if upkeep:
        yield f"{counted(upkeep, 'deletion')} below tables of the plan: the table format's own, not listed one by one"
    if others:
        yield f"{counted(others, 'deletion')} by others or by rules in the same buckets: nothing that the plan did"


def _covered(spans: Mapping[str, tuple[datetime, datetime]], claims: Claims) -> Iterator[ProofFinding]:
    if not spans:
        yield ProofFinding(Check.TRAIL_COVERAGE, "no complete chain of digests covers the erasure")
    for name, (start, end) in sorted(spans.items()):
        if start > claims.begin:
            yield ProofFinding(Check.TRAIL_COVERAGE, f"{name}: the digests begin after the erasure began")
        if end <= claims.end:
            yield ProofFinding(
                Check.TRAIL_COVERAGE, f"{name}: the digests end before the erasure ended: the newest are missing"
            )


def _access_records(folder: Path, notes: list[str]) -> list[Deletion]:
    found: list[Deletion] = []
    unread = 0
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        text = read_limited(path).decode("utf-8", errors="replace")
        deletions, skipped = access_log_deletions(path.relative_to(folder).as_posix(), text)
        found += deletions
        unread += skipped
    notes.append("access logs are best effort and unsigned: neither a line nor a missing line is a proof")
    if unread:
        notes.append(f"{counted(unread, 'line')} of the access logs could not be read")
    return found


def _requests(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        facts = record.facts.get("facts")
        if record.kind in (Kind.STEP_RESULT, Kind.STEP_FAILED) and isinstance(facts, dict):
            yield from (str(item) for item in facts.get("request_ids", ()) if item)


def _tables(plan: ErasurePlan, strict: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for copy in plan.copies:
        if is_s3(copy.location):
            place = _split(copy.location)
            if not _below(*place, strict):
                yield place


def _below(bucket: str, key: str, places: Iterable[tuple[str, str]]) -> bool:
    for other, prefix in places:
        folder = prefix.strip("/")
        if bucket == other and (not folder or f"{key}/".startswith(folder + "/")):
            return True
    return False


def _split(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri, allow_fragments=False)
    return parts.netloc, uri.split("://", 1)[1].partition("/")[2]


def _told(check: Check, messages: Sequence[str]) -> Iterator[ProofFinding]:
    for message in messages[:_SHOWN]:
        yield ProofFinding(check, message)
    if len(messages) > _SHOWN:
        yield ProofFinding(check, f"and {len(messages) - _SHOWN} more")
