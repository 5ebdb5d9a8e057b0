"""How fast proofs are made and checked, against what the machine allows in the same run. Exits 1 when a target is missed.

python -m tests.benchmarks.bench_proof [--leaves 1000000] [--objects 100000] [--requests 1000 10000 100000]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from pii_tracer.app.execution.attesting import attest_run
from pii_tracer.app.proof.attestation_checks import proof_of_request
from pii_tracer.proof import merkle_tree
from pii_tracer.proof.attestation_verifier import Given, verify_attestation
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import Group, Person, Selection
from pii_tracer.proof.evidence_leaves import Erased, ScopeFile
from pii_tracer.proof.requests_tree.request_proof import RequestProof
from pii_tracer.review.trusted_keys import load_private
from pii_tracer.run.journal import Journal, Kind, write_and_sync
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, RunVerdict, ScannedFile
from tests.proof.attested import attest
from tests.proof.deletion_log.test_deletion_log import deed
from tests.proof.test_attestation import KEY, nonces, proven
from tests.proof.test_requests import ran, several
from tests.review.plans import copy, plan

_APPENDS = 300


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest run: the machine has other work."""
    return min(timed(work) for _ in range(times))


def tree_and_root(leaves: int) -> Row:
    """Against hashlib over the same bytes: each entry once, and 65 bytes for each inner node."""
    entries = [b"%0200d" % n for n in range(leaves)]
    prefixed = [b"\x00" + entry for entry in entries]
    node = bytes(65)

    def raw() -> None:
        sha256 = hashlib.sha256
        for entry in prefixed:
            sha256(entry).digest()
        for _ in range(leaves - 1):
            sha256(node).digest()

    def ours() -> None:
        merkle_tree.Tree(map(merkle_tree.leaf_hash, entries))

    by_hashlib, by_us = best(raw), best(ours)
    share = by_hashlib / by_us
    return Row(f"tree and root, {leaves:,} leaves", f"{by_us:.2f} s, {share:.2f} of hashlib", ">= 0.50", share >= 0.5)


def inclusion(leaves: int) -> Row:
    """The slowest of a thousand proofs across the tree, each checked three times."""
    hashes = [merkle_tree.leaf_hash(b"%d" % n) for n in range(leaves)]
    tree = merkle_tree.Tree(hashes)
    root = tree.root

    def check(index: int, path: list[bytes]) -> None:
        if not merkle_tree.verify_inclusion(hashes[index], index, leaves, path, root):
            raise SystemExit("a proof does not hold")

    places = range(0, leaves, max(1, leaves // 1000))
    slowest = max(best(partial(check, index, tree.inclusion(index))) for index in places)
    return Row("inclusion proof verified, slowest of 1,000", f"{slowest * 1000:.3f} ms", "< 5 ms", slowest < 0.005)


def journal_appends(folder: Path) -> Row:
    """Appends against write and fsync of lines as long, in turns, since the disk has other work."""
    journal = Journal.open(folder / "journal.jsonl")
    facts = {"files": 12, "rows_deleted": 345, "snapshot": "x" * 40, "deleted": ["a/b/c.parquet"] * 5}
    line = b"x" * 420 + b"\n"
    raw = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    by_disk = by_us = 0.0
    try:
        for number in range(_APPENDS):
            by_disk += timed(lambda: write_and_sync(raw, line))
            by_us += timed(partial(journal.append, Kind.STEP_RESULT, step=f"c1/{number}", facts=facts))
    finally:
        os.close(raw)
    share = by_disk / by_us
    measured = f"{_APPENDS / by_us:,.0f} a second, {share:.2f} of write+fsync"
    return Row("journal appends", measured, ">= 0.50", share >= 0.5)


def verification(folder: Path, objects: int) -> Row:
    """A whole attestation over many erased objects and as many files in scope."""
    erased = [Erased(copy_id="c1", uri="/lake/c1")]
    erased += [
        Erased(copy_id="c1", uri=f"s3://archive/old/part-{n:07}.parquet", version_id=f"v{n}", sha256=f"{n:064x}")
        for n in range(objects)
    ]
    scope = [ScopeFile(path=f"c1/part-{n:07}.parquet", sha256=f"{n:064x}") for n in range(objects)]
    made = attest(replace(proven(folder), erased=erased, scope=scope), KEY, nonce=nonces())
    made.write_evidence(folder / "evidence")

    def verify() -> None:
        if verify_attestation(made.envelope, folder / "evidence", [KEY.public_key()]).findings:
            raise SystemExit("the attestation does not hold")

    took = timed(verify)
    return Row(f"attestation verified, {objects:,} objects", f"{took:.1f} s", "< 20 s", took < 20)


def many_requests(folder: Path, requests: int) -> list[Row]:
    """A run of so many requests over an invented journal of 30 steps: attested, checked, and one of them proved.

    In a process of its own, since memory is measured too: of the process before it attested, and at the most.
    """
    made = several(*(f"REQ-{number}" for number in range(requests)))
    copies = [copy(f"c{number}") for number in range(15)]
    files = [ScannedFile(path=f"part-{n}.parquet", size=9, sha256="a" * 64, decoded_as="parquet") for n in range(20)]
    seen = [ByteVerdict(copy_id=one.id, root="/", files=tuple(files)) for one in copies]
    verdict = RunVerdict(copies=tuple(CopyVerdict(copy_id=one.copy_id, bytes=one) for one in seen))
    done = ran(folder, plan(copies=copies, requests=made.requests))
    before, there = memory(), size_of(folder)
    attesting = processor(lambda: attest_run(done, verdict, ()))
    most, written = memory(), size_of(folder) - there
    key = load_private(folder / "state" / "keys" / "attest.pem").public_key()
    envelope, given = done.folder.attestation.read_bytes(), Given(approvers=None)

    def verify(of: RequestProof | None, evidence: Path | None) -> None:
        if verify_attestation(envelope, evidence, [key], given, of).findings:
            raise SystemExit("the attestation does not hold")

    checking = processor(lambda: verify(None, done.folder.evidence))
    proving = processor(lambda: proof_of_request(done.folder, f"REQ-{requests - 1}"))
    proof = proof_of_request(done.folder, f"REQ-{requests - 1}")
    one = processor(lambda: verify(proof, None))
    count = f"{requests:,} requests"
    a_request = written / requests
    return [
        Row(
            f"{count} attested",
            f"{attesting:.2f} s of processor",
            "< 0.2 ms each, + 1 s",
            attesting < 1 + requests / 5e3,
        ),
        Row(f"{count}: files", f"{written / 2**20:.1f} MiB", "< 1 KiB each", a_request < 1024),
        Row(f"{count}: memory", f"{before:.0f} MiB before, {most:.0f} at the most", "", True),
        Row(f"{count} checked with the evidence", f"{checking:.2f} s of processor", "", True),
        Row(f"{count}: one proved, and checked", f"{proving:.2f} s, {one * 1000:.1f} ms", "", True),
        Row(f"{count}: proof of one", f"{len(proof.to_bytes()):,} bytes", "", True),
    ]


def deletion_log(folder: Path, requests: int) -> list[Row]:
    """The deletion log of so many requests in forty ways, of 23 deeds each; and the log in parts read again."""
    log = DeletionLog(folder / "log.sqlite", "e")
    ways = [
        Group(
            [deed(step_id=f"c{n}/1", reason=f"way {way}" if n == way % 23 else None) for n in range(23)],
            [Person(f"REQ-{n}", f"subj_{n:016x}") for n in range(way, requests, 40)],
        )
        for way in range(40)
    ]
    adding, again = processor(lambda: log.append(ways)), processor(lambda: log.append(ways))
    one = processor(lambda: log.entries(Selection(request="REQ-77", newest=True)))
    everything = processor(lambda: sum(1 for _ in log.rows(Selection(newest=True))))
    size = log.path.stat().st_size
    count = f"{requests:,} requests, deletion log"
    return [
        Row(f"{count}: {log.count():,} rows", f"{adding:.2f} s, again {again:.2f} s", "< 0.1 ms each, + 1 s",
            max(adding, again) < 1 + requests / 1e4),
        Row(f"{count}: file", f"{size / 2**20:.1f} MiB", "< 600 bytes each", size < 600 * requests + 2**20),
        Row(f"{count}: one request read, all", f"{one * 1000:.1f} ms, {everything:.1f} s", "", True),
        Row(f"{count}: memory", f"{memory():.0f} MiB at the most", "", True),
    ]  # fmt: skip


def processor(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def memory() -> float:
    """MiB, the most that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def size_of(folder: Path) -> int:
    """Bytes in files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def in_a_process(measure: Callable[[Path, int], list[Row]], requests: int) -> list[Row]:
    """What is measured of so many requests."""
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(measure, Path(name), requests).result()


def main() -> int:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leaves", type=int, default=1_000_000)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--requests", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            tree_and_root(given.leaves),
            inclusion(given.leaves),
            journal_appends(folder),
            verification(folder, given.objects),
        ]
    for measure in (many_requests, deletion_log):
        rows += [row for requests in given.requests for row in in_a_process(measure, requests)]
    print(f"{'':46} {'measured':36} {'target':20}")
    for row in rows:
        met = ("met" if row.met else "MISSED") if row.target else ""
        print(f"{row.what:46} {row.measured:36} {row.target:20} {met}")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
