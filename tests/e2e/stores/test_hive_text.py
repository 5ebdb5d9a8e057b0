"""The whole path on delimited text and CSV that a real Hive metastore names, and in a folder that the estate file
declares; Spark with Hive writes and reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.cli.small import RECEIVED
from tests.hivesql import hive_sql
from tests.hivesupport import Hive, serving
from tests.sparksession import small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

MEMBER, PHONE = "M|4410027", "9870012345"
OTHERS = [("M|4410028", "9870012346"), ("M-4410027", "9870012347"), ("M\\9", "9870012348"), ("", "9870012349")]
PERSON = build_patterns(
    [
        KeySet(name="no", origin="members.member_no", weak=False, values=(("subj_1", MEMBER),)),
        KeySet(name="phone", origin="members.phone", weak=False, values=(("subj_1", PHONE),)),
    ]
)
BARS = "ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' ESCAPED BY '\\\\' COLLECTION ITEMS TERMINATED BY ';'"
MAKE = [
    f"CREATE EXTERNAL TABLE core.members (member_no string, phone string, seen int, tags array<string>) {BARS}"
    " STORED AS TEXTFILE LOCATION '{base}/core.db/members'",
    "CREATE EXTERNAL TABLE core.visits (member_no string, door string) PARTITIONED BY (day string)"
    " STORED AS TEXTFILE LOCATION '{base}/core.db/visits'",
    "CREATE EXTERNAL TABLE core.letters (member_no string, phone string, text string)"
    " ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH SERDEPROPERTIES ('separatorChar' = ';')"
    " STORED AS TEXTFILE LOCATION '{base}/core.db/letters' TBLPROPERTIES ('skip.header.line.count' = '1')",
    "CREATE TABLE core.exports (member_no string, phone string, seen int, day string) USING csv"
    " OPTIONS (sep '|', quote '~', header 'true', nullValue 'NA', comment '#') PARTITIONED BY (day)"
    " LOCATION '{base}/core.db/exports'",
    "SET hive.exec.compress.output=true",
    "SET mapreduce.output.fileoutputformat.compress.codec=org.apache.hadoop.io.compress.GzipCodec",
    "INSERT INTO core.members VALUES {people}",
    "SET hive.exec.compress.output=false",
    "INSERT INTO core.members VALUES ('M-2', NULL, 5, array('x', 'y'))",
    "INSERT INTO core.exports SELECT member_no, phone, seen, 'mon day' FROM core.members",
    "INSERT INTO core.visits PARTITION (day = '1') SELECT member_no, 'gate' FROM core.members",
    "ALTER TABLE core.visits ADD PARTITION (day = '2')",
    "ALTER TABLE core.visits PARTITION (day = '2')"
    " SET SERDEPROPERTIES ('field.delim' = '|', 'serialization.format' = '|', 'escape.delim' = '\\\\')",
    "INSERT INTO core.visits PARTITION (day = '2') SELECT member_no, 'pool' FROM core.members",
]
READ = [
    "SELECT * FROM core.members ORDER BY phone",
    "SELECT * FROM core.visits ORDER BY day, member_no",
    "SELECT * FROM core.letters ORDER BY phone",
    "SELECT * FROM core.exports ORDER BY phone",
]
JOBS = """
INSERT INTO core.visits SELECT member_no, 'gate' AS door, '1' AS day FROM core.members;
INSERT INTO core.letters SELECT member_no, phone, 'Dear' AS text FROM core.members;
INSERT INTO core.exports SELECT member_no, phone, seen, 'mon day' AS day FROM core.members;
INSERT INTO files.calls SELECT phone, 'noon' AS at, member_no FROM core.members
"""
HEADER = b"member_no;phone;text\r\n"
LETTERS = [
    b'"M|4410028";"9870012346";"Dear ""you""; hello"\r\n',
    b'"M|4410027";"9870012345";"Dear you"\r\n',
    b"M-4410027;9870012347\n",
    b'"M\\\\9";;"C:\\dir"\r\n',
]

CALLS = {
    "name": "files.calls",
    "format": "csv",
    "location": "calls",
    "options": {"sep": ";", "quote": "'", "escape": "'", "nullValue": "-", "encoding": "ISO-8859-1", "multiLine": True},
    "columns": [{"name": "phone"}, {"name": "at"}, {"name": "member_no", "type": "varchar(20)"}],
}
CALLED = [
    b"9870012346;'caf\xe9;\nnoon';'M|4410028'\n",
    b"9870012345;'it''s\n\nshe';'M|4410027'\n",
    b"-;noon;M-4410027\n",
]


def write_estate(base: Path, hive: Hive) -> None:
    """Estate file, policy, request and the jobs' SQL."""
    member = {"name": "member", "source": "core.members", "key": "member_no"}
    estate = {
        "version": 1,
        "estate": "texts",
        "environment": "local",
        "spark": small_spark(),
        "catalogs": {
            "hms": {"type": "hive", "uri": hive.uri},
            "spark_catalog": {"type": "declared", "tables": [CALLS]},
        },
        "roots": ["core.db", "calls"],
        "lineage": {"sql": ["jobs.sql"]},
        "subjects": [member | {"identifiers": [{"column": "phone", "category": "phone"}]}],
    }
    request = {"id": "R-1", "law": "GDPR", "received": RECEIVED, "subject": {"type": "member", "key": MEMBER}}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
    (base / "policy.yaml").write_text(yaml.safe_dump({"version": 1, "allow_immediate_retention": True}))
    (base / "request.yaml").write_text(yaml.safe_dump(request))
    (base / "jobs.sql").write_text(JOBS)


def build(base: Path, hive: Hive) -> list[list[Any]]:
    """Make the tables by Hive's serializers in Spark; gives what it reads of them."""
    write_estate(base, hive)
    quoted = [(no.replace("\\", "\\\\"), phone) for no, phone in [(MEMBER, PHONE), *OTHERS]]
    people = ", ".join(f"('{no}', '{phone}', 7, array('a;b', NULL))" for no, phone in quoted)
    (base / "core.db" / "letters").mkdir(parents=True)
    (base / "core.db" / "letters" / "000000_0").write_bytes(HEADER + b"".join(LETTERS))
    (base / "calls").mkdir()
    (base / "calls" / "part-0").write_bytes(b"".join(CALLED))
    made = [statement.replace("{base}", str(base)).replace("{people}", people) for statement in MAKE]
    return hive_sql(hive, base / "hive", [*made, *READ])[-len(READ) :]


def residue(base: Path) -> set[str]:
    """Files in which the person is, by a search that knows no columns."""
    files = (file for folder in ("core.db", "calls") for file in scan_tree(base / folder, PERSON).files)
    return {file.path for file in files if file.hits or file.unread}


def test_the_person_is_erased_and_nobody_else(tmp_path: Path) -> None:
    base, codes = tmp_path, {}
    with serving(base) as hive, hive.database("core"):
        before, file = build(base, hive), base / "hive.plan.json"
        names = {path.relative_to(base) for path in (base / "core.db").rglob("*") if not path.name.startswith(".")}

        def cli(*words: str) -> None:
            codes[words[0]] = run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])

        reason = ["--retention", "immediate", "--reason", "test: no writer, no reader"]
        cli("plan", str(base / "request.yaml"), *reason, "--out", str(file))
        plan = json.loads(file.read_text())
        assert plan["gaps"] == []
        assert {c["table"]: c["strategy"] for c in plan["copies"]} == {
            "core.members": "delete_by_key",
            "core.visits": "delete_by_key",
            "core.letters": "delete_by_key",
            "core.exports": "delete_by_key",
            "files.calls": "delete_by_key",
        }
        assert MEMBER not in file.read_text()
        public = generate(base / "approver.pem")
        (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "officer", public_pem(public).decode())]))
        who = ["--approver", "Dr. Sen", "--role", "officer", "--reason", "right", "--key", str(base / "approver.pem")]
        cli("approve", str(file), *who)
        cli("apply", str(file), "--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json"))
        cli("verify", str(file))
        after = hive_sql(hive, base / "hive", READ)
    assert codes == {"plan": 0, "approve": 0, "apply": 0, "verify": 0}
    assert [sum(row[0] == MEMBER for row in rows) for rows in before] == [1, 2, 1, 1]
    assert after == [[row for row in rows if row[0] != MEMBER] for rows in before]
    assert residue(base) == set()
    there = {path.relative_to(base) for path in (base / "core.db").rglob("*") if not path.name.startswith(".")}
    assert there == names
    kept = HEADER + b"".join(line for line in LETTERS if b'4410027";"98' not in line)
    assert (base / "core.db" / "letters" / "000000_0").read_bytes() == kept
    assert (base / "calls" / "part-0").read_bytes() == CALLED[0] + CALLED[2]
    result = json.loads((base / "result.json").read_text())
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
