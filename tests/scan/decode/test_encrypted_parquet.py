"""Parquet with modular encryption: read with the estate's keys, and never clean without them."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyarrow.parquet import encryption

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.keys import KmsMasterKeys, LocalMasterKeys
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.keys.parquet_encryption.master_keys import file_keys
from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.parquet_decryption_keys import FileKeys
from pii_tracer.scan.value_forms import build_patterns
from tests.kmssupport import REGION, StrictKms, strict_kms

PAN = "ABCDE1234F"
KEY_SETS = (KeySet(name="pan", origin="t.pan", weak=False, values=(("subj_1", PAN),)),)
ROWS = pa.table({"pan": ["ZZZZZ9999Z", PAN, "YYYYY8888Y"], "city": ["Pune"] * 3})
CLEAN = ROWS.filter(pa.array([True, False, True]))
NAMES = ("footer", "pii")


def write(path: Path, table: pa.Table, wrap: Any, plaintext_footer: bool, names: tuple[str, str] = NAMES) -> None:
    """As a writer with a KMS client of its own does it."""

    class Client(encryption.KmsClient):
        def __init__(self, config: Any) -> None:
            encryption.KmsClient.__init__(self)

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            return base64.b64encode(wrap(key_bytes, master_key_identifier)).decode()

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            raise AssertionError("nobody reads here")

    factory = encryption.CryptoFactory(Client)
    how = encryption.EncryptionConfiguration(
        footer_key=names[0], column_keys={names[1]: ["pan"]}, plaintext_footer=plaintext_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, encryption_properties=properties)


@pytest.fixture
def masters(tmp_path: Path) -> dict[str, bytes]:
    made = {}
    for name in NAMES:
        path = tmp_path / f"{name}.key"
        path.write_bytes(os.urandom(16))
        path.chmod(0o600)
        made[name] = path.read_bytes()
    return made


def local(base: Path, *names: str) -> FileKeys | None:
    declared = LocalMasterKeys(kind="local", master_keys={n: f"{n}.key" for n in names})
    return file_keys(declared, base)


def scan(folder: Path, keys: FileKeys | None) -> FileScan:
    (found,) = scan_tree(folder, build_patterns(KEY_SETS, keys)).files
    return found


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_file_is_decoded_with_the_keys_and_unread_without(
    tmp_path: Path, masters: dict[str, bytes], plaintext_footer: bool
) -> None:
    def wrap(key: bytes, name: str) -> bytes:
        nonce = os.urandom(12)
        return nonce + AESGCM(masters[name]).encrypt(nonce, key, name.encode())

    data = tmp_path / "data"
    write(data / "part-0.parquet", ROWS, wrap, plaintext_footer)
    assert PAN.encode() not in (data / "part-0.parquet").read_bytes()
    keys = local(tmp_path, *NAMES)
    with_keys = scan(data, keys)
    assert {(h.column, h.where) for h in with_keys.hits} >= {("pan", "data"), ("pan", "statistics")}
    assert not with_keys.unread
    without = scan(data, None)
    assert not without.hits
    assert without.unread
    half = scan(data, local(tmp_path, "footer"))  # the column's key is missing
    assert not half.hits
    assert half.unread
    write(data / "part-0.parquet", CLEAN, wrap, plaintext_footer)
    clean = scan(data, keys)
    assert (clean.hits, clean.unread) == ((), ())


def test_another_master_key_or_one_that_others_can_read_leaves_the_file_unread(
    tmp_path: Path, masters: dict[str, bytes]
) -> None:
    def wrap(key: bytes, name: str) -> bytes:
        nonce = os.urandom(12)
        return nonce + AESGCM(masters[name]).encrypt(nonce, key, name.encode())

    write(tmp_path / "data" / "part-0.parquet", ROWS, wrap, False)
    keys = local(tmp_path, *NAMES)
    (tmp_path / "pii.key").chmod(0o644)
    assert scan(tmp_path / "data", keys).unread
    (tmp_path / "pii.key").chmod(0o600)
    (tmp_path / "pii.key").write_bytes(os.urandom(16))
    assert scan(tmp_path / "data", keys).unread


def test_a_key_that_parquet_mr_wrapped_opens(tmp_path: Path) -> None:
    """Made by `KeyToolkit.encryptKeyLocally` of parquet-hadoop 1.13.1: bytes 0 to 15 under the master key `pii`."""
    wrapped = "3U5HaviQdrBtdfR4RBj50wkic4M0cJzbKhSbqdG+8Xxuvjrrhk3zhYTjVUs="
    path = tmp_path / "pii.key"
    path.write_bytes(b"0123456789012345")
    path.chmod(0o600)
    keys = local(tmp_path, "pii")
    assert keys is not None
    assert keys.unwrap(wrapped, "pii") == bytes(range(16))


def test_plain_files_are_read_as_ever_where_keys_are_declared(tmp_path: Path, masters: dict[str, bytes]) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(ROWS, tmp_path / "data" / "part-0.parquet")
    found = scan(tmp_path / "data", local(tmp_path, *NAMES))
    assert found.hits
    assert not found.unread


def test_keys_in_kms_open_files_until_the_key_is_disabled(tmp_path: Path) -> None:
    with strict_kms() as kms:
        _with_kms(kms, tmp_path / "data")


def _with_kms(kms: StrictKms, folder: Path) -> None:
    footer, pii = (kms.key().rsplit("/", 1)[1] for _ in range(2))  # names of keys must not hold colons here
    client = kms.client()

    def wrap(key: bytes, name: str) -> bytes:
        return bytes(client.encrypt(KeyId=name, Plaintext=key)["CiphertextBlob"])

    write(folder / "part-0.parquet", ROWS, wrap, False, (footer, pii))
    declared = KmsMasterKeys(kind="kms", region=REGION, endpoint_url=kms.endpoint)
    assert scan(folder, file_keys(declared, folder)).hits
    client.disable_key(KeyId=pii)
    found = scan(folder, file_keys(declared, folder))
    assert not found.hits
    assert found.unread


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_discovery_survives_encrypted_files_it_has_no_key_for(tmp_path: Path, plaintext_footer: bool) -> None:
    """pyarrow ends the process when the metadata of a column is asked for whose key is missing."""
    write(tmp_path / "data" / "t" / "part-0.parquet", ROWS, lambda key, name: key, plaintext_footer)
    estate = Estate(
        version=1,
        estate="t",
        environment="local",
        catalogs={},
        roots=("data",),
        lineage=LineageSources(),
        subjects=(Subject(name="p", source="t", key="pan"),),
    )
    found = discover(estate, tmp_path)
    assert bool(found.tables) is plaintext_footer
    assert [g.kind for g in found.gaps] == ([] if plaintext_footer else ["unreadable"])
