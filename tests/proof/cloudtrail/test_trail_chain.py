"""The digest chain: it holds as AWS makes it, and no byte, file or order can be another."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.model.errors import ProofError
from pii_tracer.proof.cloudtrail.digest_chain import Trail, load_keys, read_trail
from pii_tracer.proof.findings import Check
from tests.proof.aws import OTHER_RSA_KEY, RSA_KEY, START, TrailWriter, call, keys_json

HOUR = timedelta(hours=1)
KEYS = keys_json(RSA_KEY)


def written(folder: Path, hours: int = 4, prefix: str = "") -> TrailWriter:
    writer = TrailWriter(folder, prefix=prefix)
    for n in range(hours):
        start = START + n * HOUR
        writer.hour(start, [call("archive", f"R{n}", start)] if n != 1 else None)
    return writer


def read(folder: Path, keys: bytes = KEYS) -> Trail:
    return read_trail(folder, load_keys(keys))


@pytest.mark.parametrize("prefix", ["", "org/trails/"])
def test_a_chain_as_it_is_made_holds_wherever_it_was_synced_to(tmp_path: Path, prefix: str) -> None:
    written(tmp_path / "copy", prefix=prefix)
    for folder in (tmp_path, tmp_path / "copy"):
        trail = read(folder)
        assert (trail.findings, trail.notes) == ([], [])
        assert len(trail.logs) == 3
        assert list(trail.spans.values()) == [(START, START + 4 * HOUR)]


def test_removed_files_are_found_wherever_they_lay(tmp_path: Path) -> None:
    writer = written(tmp_path / "all")
    beside = [p.with_name(p.name + ".head.json") for p in writer.digests]
    for path in (*writer.logs, *writer.digests[1:-1], *beside):
        shutil.copytree(tmp_path / "all", tmp_path / "cut")
        (tmp_path / "cut" / path.relative_to(tmp_path / "all")).unlink()
        trail = read(tmp_path / "cut")
        assert {f.check for f in trail.findings} == {Check.TRAIL_CHAIN}, path
        assert not trail.spans
        shutil.rmtree(tmp_path / "cut")


def test_a_cut_end_or_beginning_shortens_what_is_covered(tmp_path: Path) -> None:
    writer = written(tmp_path)
    writer.digests[-1].unlink()
    trail = read(tmp_path)
    assert list(trail.spans.values()) == [(START, START + 3 * HOUR)]
    assert any("without a digest" in note for note in trail.notes)
    assert writer.logs[-1].name not in {Path(place).name for place in trail.logs}
    writer.digests[0].unlink()
    assert list(read(tmp_path).spans.values()) == [(START + HOUR, START + 3 * HOUR)]


def test_an_empty_folder_proves_nothing(tmp_path: Path) -> None:
    assert [f.check for f in read(tmp_path).findings] == [Check.TRAIL_CHAIN]


def test_keys_of_others_and_things_that_are_no_keys(tmp_path: Path) -> None:
    written(tmp_path)
    assert not read(tmp_path, keys_json(OTHER_RSA_KEY)).spans
    renamed = json.loads(keys_json(OTHER_RSA_KEY))
    renamed["PublicKeyList"][0]["Fingerprint"] = json.loads(KEYS)["PublicKeyList"][0]["Fingerprint"]
    assert not read(tmp_path, json.dumps(renamed).encode()).spans
    assert read(tmp_path, keys_json(OTHER_RSA_KEY, RSA_KEY)).spans
    for wrong in (b"", b"{}", b'{"PublicKeyList": [{"Value": "AAAA", "Fingerprint": "f"}]}'):
        with pytest.raises(ProofError, match="public keys"):
            load_keys(wrong)


def test_a_chain_begun_anew_is_a_gap(tmp_path: Path) -> None:
    writer = written(tmp_path, 2)
    writer.before = {}
    writer.hour(START + 2 * HOUR)
    assert any("a new chain begins" in f.message for f in read(tmp_path).findings)


def test_a_digest_of_an_hour_that_was_left_out_is_a_gap(tmp_path: Path) -> None:
    writer = written(tmp_path, 2)
    writer.hour(START + 3 * HOUR)
    assert any("no digest covers" in f.message for f in read(tmp_path).findings)


def test_reordering_and_swapping_are_found(tmp_path: Path) -> None:
    for kind in ("logs", "digests"):
        folder = tmp_path / kind
        writer = written(folder)
        one, other = getattr(writer, kind)[:2]
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
        assert {f.check for f in read(folder).findings} == {Check.TRAIL_CHAIN}


def test_a_log_file_that_was_put_there_is_not_believed(tmp_path: Path) -> None:
    writer = written(tmp_path)
    forged = writer.logs[0].with_name(writer.logs[0].name.replace("Ab12", "Zz99"))
    forged.write_bytes(gzip.compress(json.dumps({"Records": [call("archive", "FORGED", START)]}).encode()))
    trail = read(tmp_path)
    assert {d.request_id for d in trail.deletions} == {"R0", "R2", "R3"}
    assert any("without a digest" in note for note in trail.notes)


def test_a_file_that_unzips_without_end_is_refused(tmp_path: Path) -> None:
    writer = written(tmp_path)
    writer.logs[0].write_bytes(gzip.compress(bytes(2**29 + 1), 9))
    assert any("the log file differs from its digest" in f.message for f in read(tmp_path).findings)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), unzipped=st.booleans())
def test_any_changed_byte_is_found(tmp_path: Path, data: st.DataObject, unzipped: bool) -> None:
    folder = tmp_path / "trail"
    if not folder.exists():
        written(folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    path = data.draw(st.sampled_from(files))
    kept = path.read_bytes()
    zipped = path.suffix == ".gz"
    content = gzip.decompress(kept) if zipped and unzipped else kept
    place = data.draw(st.integers(0, len(content) - 1))
    changed = bytearray(content)
    changed[place] = data.draw(st.integers(0, 255).filter(lambda b: b != content[place]))
    try:
        path.write_bytes(gzip.compress(bytes(changed)) if zipped and unzipped else bytes(changed))
        trail = read(folder)
        if not trail.findings:
            # only what is around the content may differ: gzip's own header, other metadata of the object
            assert not (zipped and unzipped)
            assert _said(path) == _said_of(kept, zipped)
    finally:
        path.write_bytes(kept)


def _said(path: Path) -> object:
    return _said_of(path.read_bytes(), path.suffix == ".gz")


def _said_of(data: bytes, zipped: bool) -> object:
    if zipped:
        return gzip.decompress(data)
    said = json.loads(data)["Metadata"]
    return bytes.fromhex(said["signature"]), said["signature-algorithm"]
