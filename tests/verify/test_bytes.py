"""Residue, same digits in another column, and what could not be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.header import Header
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.model.datasets import (
    Format,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import EstateError
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import look_past, verify_bytes, verify_objects
from pii_tracer.verify.verdicts import (
    Bystanders,
    CopyVerdict,
    RowVerdict,
    RunVerdict,
    StateRows,
)
from tests.scan.support import BOTH, OTHER_PHONE, PHONE, USER, parquet, write
from tests.verify.conftest import a_copy


def _table(root: Path, phone: str, user: int, merchant: int) -> None:
    data = parquet(pa.table({"phone": [phone], "user_id": [user], "merchant_id": [merchant]}))
    write(root, "part-0.parquet", data)


def test_a_merchant_with_the_same_number_is_no_residue(tmp_path: Path) -> None:
    copy = a_copy(Format.PARQUET, tmp_path, other_keys=("merchant_id",))
    _table(tmp_path, OTHER_PHONE, 1, USER)
    verdict = verify_bytes(copy, BOTH, tmp_path)
    assert verdict.clean
    assert [(d.column, d.files) for d in verdict.same_digits] == [("merchant_id", 1)]
    _table(tmp_path, OTHER_PHONE, USER, USER)
    verdict = verify_bytes(copy, BOTH, tmp_path)
    assert {(r.where, r.form) for r in verdict.residue} == {
        ("data: user_id", "number"),
        ("statistics: user_id", "number"),
    }


def test_a_strong_value_has_no_excuse_in_any_column(tmp_path: Path) -> None:
    _table(tmp_path, PHONE, 1, 1)
    copy = a_copy(Format.PARQUET, tmp_path, other_keys=("phone", "merchant_id"))
    verdict = verify_bytes(copy, BOTH, tmp_path)
    assert verdict.residue
    assert verdict.residue[0].as_json().keys() == {"copy", "file", "where", "form"}
    assert PHONE not in verdict.model_dump_json()


def test_a_weak_number_without_a_column_is_residue(tmp_path: Path) -> None:
    write(tmp_path, "notes.log", f"id {USER} left".encode())
    copy = a_copy(Format.PARQUET, tmp_path, other_keys=("merchant_id",))
    assert verify_bytes(copy, BOTH, tmp_path).residue


@pytest.mark.parametrize(("key", "residue"), [("merchant_id", False), ("user_id", True), ("merchant_id,user_id", True)])
def test_hudi_record_keys_mean_what_they_are_made_of(tmp_path: Path, key: str, residue: bool) -> None:
    write(tmp_path, ".hoodie/hoodie.properties", f"hoodie.table.recordkey.fields={key}\n".encode())
    write(tmp_path, "a.parquet", parquet(pa.table({"_hoodie_record_key": [str(USER)]})))
    copy = a_copy(HUDI, tmp_path, other_keys=("merchant_id",))
    assert bool(verify_bytes(copy, BOTH, tmp_path).residue) is residue


HANDLE, LONGER = "ashakumar", "ashakumari"
BY_HANDLE = Match(terms=(MatchTerm(column="handle", key_set="handle", type="string"),))
HANDLES = build_patterns([KeySet(name="handle", origin="handle", weak=False, values=(("s", HANDLE),))])


@pytest.mark.parametrize(
    ("column", "match", "key", "residue"),
    [
        ("handle", BY_HANDLE, LONGER, False),
        ("handle", BY_HANDLE, HANDLE, True),
        ("nickname", BY_HANDLE, LONGER, True),
        ("handle", None, LONGER, True),
        ("handle", Match(terms=(MatchTerm(column="handle", key_set="other", type="string"),)), LONGER, True),
    ],
)
def test_cells_of_the_columns_that_the_plan_deletes_by_are_compared_as_a_whole(
    tmp_path: Path, column: str, match: Match | None, key: str, residue: bool
) -> None:
    data = parquet(pa.table({column: ["a", key, "z"]}))
    write(tmp_path, "a.parquet", data)
    verdict = verify_bytes(a_copy(Format.PARQUET, tmp_path, match=match), HANDLES, tmp_path)
    assert bool(verdict.residue) is residue
    assert verdict.compared == (("handle",) if match else ())
    copy = a_copy(Format.PARQUET, "s3://bucket/archive", match=match)
    verdict = verify_objects(copy, HANDLES, [Version("archive/a.parquet", "bytes", data)])
    assert bool(verdict.residue) is residue


@pytest.mark.parametrize(("fields", "residue"), [("handle", False), ("handle,at", True), ("at", True)])
def test_hudi_keys_that_are_made_of_the_key_alone(tmp_path: Path, fields: str, residue: bool) -> None:
    write(tmp_path, ".hoodie/hoodie.properties", f"hoodie.table.recordkey.fields={fields}\n".encode())
    table = pa.table({"_hoodie_record_key": [f"handle:{LONGER}", LONGER], "handle": [LONGER, LONGER]})
    write(tmp_path, "a.parquet", parquet(table))
    verdict = verify_bytes(a_copy(HUDI, tmp_path, match=BY_HANDLE), HANDLES, tmp_path)
    assert bool(verdict.residue) is residue


def test_what_is_no_copy_has_no_key_columns(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", parquet(pa.table({"handle": [LONGER]})))
    assert look_past("other", str(tmp_path), scan_tree(tmp_path, HANDLES).files).residue


def test_an_unread_file_is_not_clean(tmp_path: Path) -> None:
    write(tmp_path, "a.bin", os.urandom(2000))
    verdict = verify_bytes(a_copy(Format.PARQUET, tmp_path), BOTH, tmp_path)
    assert not verdict.residue
    assert not verdict.clean
    assert verdict.unverified[0].startswith("a.bin: ")


@dataclass(frozen=True)
class Version:
    """An object version whose bytes are at hand, or not."""

    key: str
    evidence: str
    data: bytes = b""
    version_id: str = "v1"
    reason: str | None = None
    sha256: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] | None = field(default_factory=dict)
    identity: str | None = None

    def tags(self) -> Mapping[str, str]:
        if self.labels is None:
            raise EstateError("its tags cannot be read: AccessDenied")
        return self.labels

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self) -> tuple[bytes, Mapping[str, Any], bool]:
        return self.data, self.answer, True

    def answer_now(self) -> Mapping[str, Any] | None:
        return self.answer


def test_object_versions(tmp_path: Path) -> None:
    body = parquet(pa.table({"phone": [PHONE]}))
    clean = parquet(pa.table({"phone": [OTHER_PHONE]}))
    copy = a_copy(Format.PARQUET, "s3://bucket/archive")
    verdict = verify_objects(
        copy,
        BOTH,
        [
            Version("archive/a.parquet", "bytes", body, version_id="old"),
            Version("archive/a.parquet", "bytes", clean, version_id="new"),
            Version("archive/b.parquet", "marker"),
            Version("archive/c.parquet", "known", sha256="ab" * 32),
            Version("archive/d.parquet", "unreadable", reason="archived and not restored"),
            Version("archive/e.parquet", "known"),
        ],
    )
    assert {r.file for r in verdict.residue} == {"archive/a.parquet?versionId=old"}
    assert len(verdict.files) == 4
    assert [u.split(":")[0] for u in verdict.unverified] == [
        "archive/d.parquet?versionId=v1",
        "archive/e.parquet?versionId=v1",
    ]


ENCODED = Header(PHONE, "utf-8").encode()


@pytest.mark.parametrize(
    ("answer", "labels", "where"),
    [
        ({"Metadata": {"owner": PHONE}}, {}, "object metadata: owner"),
        ({"Metadata": {f"of-{PHONE}": "x"}}, {}, "object metadata"),
        ({"Metadata": {"owner": ENCODED}}, {}, "object metadata: owner"),
        ({"Metadata": {"raw": f'{{"tel": "{PHONE}"}}'}}, {}, "object metadata: raw.$.tel"),
        ({"ContentDisposition": f'attachment; filename="{PHONE}.parquet"'}, {}, "object header: ContentDisposition"),
        ({}, {"customer": PHONE}, "object tag: customer"),
        ({}, {PHONE: "yes"}, "object tag"),
    ],
)
@pytest.mark.parametrize("evidence", ["bytes", "known", "unreadable"])
def test_what_stands_beside_the_bytes_is_residue(
    answer: dict[str, Any], labels: dict[str, str], where: str, evidence: str
) -> None:
    clean = parquet(pa.table({"phone": [OTHER_PHONE]}))
    version = Version("archive/a.parquet", evidence, clean, sha256="ab" * 32, answer=answer, labels=labels)
    verdict = verify_objects(a_copy(Format.PARQUET, "s3://bucket/archive"), BOTH, [version])
    assert where in {r.where for r in verdict.residue}
    assert PHONE not in verdict.model_dump_json()


def test_what_is_beside_the_bytes_and_cannot_be_read_is_unverified() -> None:
    clean = parquet(pa.table({"phone": [OTHER_PHONE]}))
    copy = a_copy(Format.PARQUET, "s3://bucket/archive")
    for told in ({"labels": None}, {"answer": {"MissingMeta": 1}}, {"answer": {"Metadata": {"a": "=?no?Q?x?="}}}):
        verdict = verify_objects(copy, BOTH, [Version("archive/a.parquet", "bytes", clean, **told)])  # type: ignore[arg-type]
        assert len(verdict.unverified) == 1
        assert not verdict.clean
    other = Version("archive/a.parquet", "bytes", clean, answer={"Metadata": {"by": OTHER_PHONE}}, labels={"a": "b"})
    assert verify_objects(copy, BOTH, [other]).clean


def test_a_copy_is_erased_only_when_everything_looked_at_says_so(tmp_path: Path) -> None:
    _table(tmp_path, OTHER_PHONE, 1, 1)
    clean = verify_bytes(a_copy(Format.PARQUET, tmp_path), BOTH, tmp_path)
    rows = RowVerdict(copy_id="c", states=(StateRows(state="current", rows=0),))
    left = RowVerdict(copy_id="c", states=(StateRows(state="tag q3", rows=2),))
    kept = Bystanders(copy_id="c", lost=0, equal=True)
    assert CopyVerdict(copy_id="c", bytes=clean, rows=rows, bystanders=kept).erased
    assert not CopyVerdict(copy_id="c").erased
    assert not CopyVerdict(copy_id="c", bytes=clean, rows=left).erased
    assert not CopyVerdict(copy_id="c", bytes=clean, bystanders=Bystanders(copy_id="c", lost=0, equal=False)).erased
    run = RunVerdict(
        copies=(
            CopyVerdict(copy_id="c", bytes=clean, rows=left, bystanders=Bystanders(copy_id="c", lost=3, equal=False)),
            CopyVerdict(copy_id="d", bytes=clean),
        )
    )
    assert run.erased == ("d",)
    assert [r.where for r in run.residue] == ["rows: tag q3"]
    assert (run.bystander_rows_lost, run.checksum_equal) == (3, False)
