"""Delimited text and CSV in S3 that Glue alone describes: found, planned, erased and verified."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.app.planning.test_glue import lake, store
from tests.app.planning.test_remote import MAIL, PERSON, Shop
from tests.hdfs.shop import HELD, REFILLS
from tests.hivesupport import TEXT
from tests.hivetextsupport import LAZY, OPEN_CSV
from tests.leaks import Person, leaks
from tests.storeservers import Store, signed
from tests.waivers import name_what_was_seen

__all__ = ["signed", "store"]

JOBS = """
INSERT INTO prod.members SELECT uid, mail FROM shop.people;
INSERT INTO prod.visits SELECT uid, NULL AS mail, '1' AS day FROM shop.people;
INSERT INTO prod.letters SELECT uid, mail FROM shop.people;
"""
BARS = {"field.delim": "|", "escape.delim": "\\"}
HER = f"{PERSON}|{MAIL}|x\n".encode()
OTHERS = b"4417700103|\\N\r\n4417700104|a\\|b|\xc3\xa9\n"
HEADER = b"uid;mail\r\n"
LETTERS = b'"4417700103";"a ""b"""\r\n4417700104;c\n'


COLUMNS = {"uid": "bigint", "mail": "string"}


def described(
    client: Any,
    name: str,
    place: str,
    serde: str,
    options: Mapping[str, str],
    columns: Mapping[str, str] = COLUMNS,
    **parameters: str,
) -> Any:
    """A table of Glue without partitions; what describes its files."""
    storage = {
        "Location": place,
        "InputFormat": TEXT,
        "Columns": [{"Name": column, "Type": kind} for column, kind in columns.items()],
        "SerdeInfo": {"SerializationLibrary": serde, "Parameters": options},
    }
    told = {"Name": name, "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage, "Parameters": parameters}
    client.create_table(DatabaseName="prod", TableInput=told)
    return told


def fill(shop: Shop, client: Any) -> dict[str, bytes]:
    """Three tables, one with a partition of its own characters; by key, what must stay of each object."""
    made = {
        "members/1.gz": (gzip.compress(OTHERS + HER), OTHERS),
        "members/2": (OTHERS + HER + OTHERS, OTHERS + OTHERS),
        "members/3": (OTHERS, OTHERS),
        "visits/day=1/1": (f"0{PERSON}|\\N\n1|\\N\n".encode(), b"1|\\N\n"),
        "visits/day=2/1": (f"+{PERSON};\\N\n1;\\N\n".encode(), b"1;\\N\n"),
        "letters/1.csv": (HEADER + LETTERS + f'"{PERSON}";"{MAIL}"\n'.encode(), HEADER + LETTERS),
    }
    for key, (data, _) in made.items():
        shop.put(f"lake/{key}", data)
    at = f"s3://{shop.bucket}/lake"
    described(client, "members", f"{at}/members/", LAZY, BARS)
    described(client, "letters", f"{at}/letters", OPEN_CSV, {"separatorChar": ";"}, **{"skip.header.line.count": "1"})
    visits = described(client, "visits", f"{at}/visits", LAZY, BARS)
    client.update_table(DatabaseName="prod", TableInput=visits | {"PartitionKeys": [{"Name": "day", "Type": "string"}]})
    for day, options in (("1", BARS), ("2", BARS | {"field.delim": ";"})):
        storage = visits["StorageDescriptor"]
        mine = {"Location": f"{at}/visits/day={day}", "SerdeInfo": {**storage["SerdeInfo"], "Parameters": options}}
        told = {"Values": [day], "StorageDescriptor": storage | mine}
        client.create_partition(DatabaseName="prod", TableName="visits", PartitionInput=told)
    return {f"lake/{key}": left for key, (_, left) in made.items()}


def parted_by(client: Any, name: str, sign: str) -> str:
    """Change the sign between the cells of a table of CSV; the sign before."""
    told = client.get_table(DatabaseName="prod", Name=name)["Table"]
    kept = {key: told[key] for key in ("Name", "TableType", "StorageDescriptor", "Parameters")}
    parameters = kept["StorageDescriptor"]["SerdeInfo"]["Parameters"]
    before: str = parameters["separatorChar"]
    parameters["separatorChar"] = sign
    client.update_table(DatabaseName="prod", TableInput=kept)
    return before


def words(shop: Shop, *more: str) -> list[str]:
    return [*more, "--estate", str(shop.base / "pii-tracer.yaml"), "--state", str(shop.base / "state")]


def planned(shop: Shop, jobs: str = JOBS) -> tuple[int, dict[str, Any]]:
    """The exit code and the plan: the source is held, so that no engine has to run."""
    shop.jobs = jobs
    shop.more = yaml.safe_dump({"holds": [{**HELD, "datasets": ["shop.people"]}]})
    shop.write()
    (shop.base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    refills = REFILLS.replace("users", "people")
    waivers = shop.base / "waivers.yaml"
    waivers.write_text(yaml.safe_dump({refills: {"who": "Ann", "why": "stopped", "until": "2099-01-01T00:00:00Z"}}))
    file = shop.base / "text.plan.json"
    how = ["--retention", "immediate", "--reason", "test", "--out", str(file), "--waivers", str(waivers)]
    made = words(shop, "plan", str(shop.base / "request.yaml"), *how)
    run(made)
    name_what_was_seen(waivers, json.loads(file.read_text())["gaps"])
    return run(made), json.loads(file.read_text())


def approved(shop: Shop) -> list[str]:
    """The command that applies the plan."""
    base, file = shop.base, str(shop.base / "text.plan.json")
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
    who = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "approver.pem")]
    assert run(words(shop, "approve", file, *who)) == ExitCode.DONE
    result = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    return words(shop, "apply", file, *result)


def versions(shop: Shop) -> dict[str, list[bytes]]:
    """Every version of every object of the tables, unpacked."""
    client, found = shop.store.client(), dict[str, list[bytes]]()
    for page in client.get_paginator("list_object_versions").paginate(Bucket=shop.bucket, Prefix="lake/"):
        assert not page.get("DeleteMarkers")
        for item in page.get("Versions", ()):
            at = {"Bucket": shop.bucket, "Key": item["Key"], "VersionId": item["VersionId"]}
            data = client.get_object(**at)["Body"].read()
            found.setdefault(item["Key"], []).append(gzip.decompress(data) if item["Key"].endswith(".gz") else data)
    return found


def test_the_person_leaves_every_version_of_text_that_glue_describes(store: Store, tmp_path: Path) -> None:
    with lake(store, tmp_path) as (shop, client):
        left = fill(shop, client)
        # the naive way: the object is written over without her
        naive = versions(shop)["lake/members/2"][0]
        shop.put("lake/members/2", left["lake/members/2"])
        assert naive in versions(shop)["lake/members/2"]
        code, plan = planned(shop)
        assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS.replace("users", "people")])
        copies = {(copy["table"], copy["kind"]) for copy in plan["copies"]}
        assert copies - {("shop.people", "SOURCE")} == {
            *(("prod." + name, "ARCHIVE") for name in ("members", "visits", "letters")),
            ("prod.members", "OBJECT_VERSION"),
        }
        assert not [value for value in (str(PERSON), MAIL) if value in (shop.base / "text.plan.json").read_text()]
        apply, before = approved(shop), versions(shop)
        usual = parted_by(client, "letters", ",")
        assert run(apply) == ExitCode.DRIFT, "Glue says something else than at planning"
        assert versions(shop) == before
        parted_by(client, "letters", usual)
        assert run(apply) == ExitCode.DONE
        assert versions(shop) == {key: [data] for key, data in left.items()}
        result = json.loads((shop.base / "result.json").read_text())
        assert (result["state"], result["residue"], result["unverified"]) == ("complete", [], [])
        assert (result["rows_erased"], result["bystander_rows_lost"]) == (4, 0)
        assert leaks(Person((MAIL, str(PERSON))), [shop.base / "state"]) == []
        verify = words(shop, "verify", str(shop.base / "text.plan.json"))
        assert run(verify) == ExitCode.DONE
        shop.put("lake/visits/day=1/2", f"00{PERSON}|\\N\n".encode())
        assert run(verify) == ExitCode.RESIDUE


def test_two_readings_of_one_folder_and_what_is_no_row_stay_gaps(store: Store, tmp_path: Path) -> None:
    with lake(store, tmp_path) as (shop, client):
        for name, folder in (("members", "one"), ("letters", "one"), ("visits", "two")):
            options = {"field.delim": {"letters": ","}.get(name, "|")}
            described(client, name, f"s3://{shop.bucket}/{folder}", LAZY, options)
        shop.put("one/1", HER)
        shop.put("two/1", HER)
        shop.put("two/below/1", HER)
        shop.jobs = JOBS
        reasons = {place.rpartition("/")[2]: gap["reason"] for place, gap in shop.gaps().items()}
    assert "read the same files as different text" in reasons["one"]
    assert "1 object other than data files that engines read: two/below/1" in reasons["two"]


def test_values_that_no_rewrite_removes_are_gaps(store: Store, tmp_path: Path) -> None:
    """In a line of a header, and after the last column."""
    with lake(store, tmp_path) as (shop, client):
        for name, lines in (("heads", HER), ("tails", f"uid|mail\n4417700103|a|{PERSON}\n".encode())):
            described(client, name, f"s3://{shop.bucket}/{name}", LAZY, BARS, **{"skip.header.line.count": "1"})
            shop.put(f"{name}/1", lines + OTHERS)
            shop.put(f"{name}/2", b"uid|mail\n" + HER)
        jobs = [f"INSERT INTO prod.{name} SELECT uid, mail FROM shop.people;\n" for name in ("heads", "tails")]
        code, plan = planned(shop, "".join(jobs))
    reasons = {gap["id"]: gap["reason"] for gap in plan["gaps"] if gap["kind"] == "left_behind"}
    heads, tails = (reasons[f"gap-left_behind-{shop.bucket}-{name}"] for name in ("heads", "tails"))
    assert "a line of a header or footer" in heads
    assert "after the last column" in tails
    assert code == ExitCode.INCOMPLETE


def test_no_folder_is_read_by_its_first_line_where_glue_has_text_that_is_not_read(store: Store, tmp_path: Path) -> None:
    """The place of such a table, one around it, one inside of it, and one that engines pass over."""
    odd = BARS | {"escape.delim": "#"}
    with lake(store, tmp_path) as (shop, client):
        for declared, registered in (
            ("same", "same"),
            ("around", "around/odd"),
            ("in/side", "in"),
            ("near", "near/_symlink_format_manifest"),
        ):
            table = declared.replace("/", "")
            described(client, f"odd_{table}", f"s3://{shop.bucket}/{registered}", LAZY, odd)
            shop.put(f"{declared}/1.csv", b"uid,mail\n" + f"{PERSON},{MAIL}\n".encode())
            shop.jobs += f"INSERT INTO prod.{table} SELECT uid, mail FROM shop.people;\n"
            shop.tables[f"prod.{table}"], shop.formats[f"prod.{table}"] = f"s3://{shop.bucket}/{declared}", "csv"
        plan = shop.plan()
    reasons = {
        gap["evidence"].partition(";")[0]: gap["reason"] for gap in plan["gaps"] if gap["kind"] == "remote_table"
    }
    at = f"s3://{shop.bucket}"
    assert reasons.keys() == {f"{at}/same", f"{at}/around", f"{at}/in/side"}
    assert (
        "the catalog's table aws.prod.odd_same is in this place, and its files are not plain rows"
        in reasons[f"{at}/same"]
    )
    assert f"{at}/around/odd is inside its folder" in reasons[f"{at}/around"]
    assert "the catalog's table aws.prod.odd_inside is in this place" in reasons[f"{at}/in/side"]
    steps = {copy["table"] for copy in plan["copies"] if copy["id"] in {step["copy"] for step in plan["steps"]}}
    assert steps == {"shop.people", "prod.near"}
