"""What lies in the package: people, jobs, recorded events, estate file, requests, policy."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlglot

from pii_tracer.config.estate_file import load_estate, load_policy, load_request
from sample_lineage.archives import WEEKS, weeks
from sample_lineage.build import HERE, RECORDED_ROOT, job_files, statements, write_files
from sample_lineage.people import FORMER_CUSTOMER, MERCHANT_NAMESAKE, PERSON, SECOND_PERSON, populate
from sample_lineage.record import DROPPED_FACETS, clean_event

AS_OF = datetime(2026, 11, 20, 6, 0, tzinfo=timezone.utc)
EVENT_FILES = sorted((HERE / "events").glob("*.ndjson"))


def test_people_are_the_same_for_the_same_day() -> None:
    assert populate(AS_OF) == populate(AS_OF)
    later = populate(AS_OF + timedelta(days=3))
    assert [p.payment_id for p in later.payments] == [p.payment_id for p in populate(AS_OF).payments]


def test_no_two_people_share_an_identifier() -> None:
    people = populate(AS_OF)
    for field in ("user_id", "pan", "phone", "aadhaar_ref"):
        values = [getattr(user, field) for user in people.users]
        assert len(set(values)) == len(values) == 200
    ours = {user.pan for user in people.users} | {user.phone for user in people.users}
    assert not ours & ({vendor.pan for vendor in people.vendors} | {vendor.phone for vendor in people.vendors})


def test_identifiers_have_their_forms_and_no_reference_number_could_be_issued() -> None:
    for user in populate(AS_OF).users:
        assert re.fullmatch(r"[A-Z]{3}P[A-Z]\d{4}[A-Z]", user.pan)
        assert re.fullmatch(r"\+91 [6-9]\d{4} \d{5}", user.phone)
        assert re.fullmatch(r"[01]\d{11}", user.aadhaar_ref)


def test_the_person_pays_in_every_batch_and_a_merchant_has_her_number() -> None:
    people = populate(AS_OF)
    hers = [payment for payment in people.payments if payment.user_id == PERSON]
    assert len(hers) == 12
    assert len({payment.paid_at.date() for payment in hers}) > 5
    assert all(any(payment.user_id == PERSON for payment in batch) for batch in people.batches())
    assert any(payment.status == "disputed" for payment in hers)
    payers = {payment.user_id for payment in people.payments if payment.merchant_id == MERCHANT_NAMESAKE}
    assert PERSON in payers
    assert len(payers) > 20
    assert all(payment.paid_at < AS_OF for payment in people.payments)


@pytest.mark.parametrize("number", [PERSON, SECOND_PERSON])
def test_nobody_elses_values_hold_the_number_by_chance(number: int) -> None:
    people = populate(AS_OF)
    for user in people.users:
        text = " ".join((user.pan, user.phone.replace(" ", ""), user.aadhaar_ref))
        assert str(number) not in text


def test_archived_weeks_are_whole_and_younger_than_their_expiry() -> None:
    found = weeks(AS_OF)
    assert len(found) == WEEKS
    assert all(week.weekday() == 0 for week in found)
    assert found[-1] + timedelta(days=7) <= AS_OF.date()
    assert AS_OF.date() - (found[0] + timedelta(days=7)) < timedelta(days=90)


@pytest.mark.parametrize("job", job_files(), ids=lambda job: job.stem)
def test_jobs_parse(job: Path) -> None:
    for statement in statements(job, Path("/somewhere/else")):
        assert RECORDED_ROOT not in statement
        # sqlglot knows Hive's form of INSERT OVERWRITE DIRECTORY, not Spark's with USING and OPTIONS
        hive = re.sub(r"(DIRECTORY '[^']*') USING \w+(\s+OPTIONS \([^)]*\))?", r"\1", statement)
        assert sqlglot.parse_one(hive, dialect="spark") is not None


@pytest.mark.parametrize("job", job_files(), ids=lambda job: job.stem)
def test_events_say_the_sql_that_the_jobs_have_now(job: Path) -> None:
    """Fails when a job was changed and its events were not recorded anew."""
    wanted = {" ".join(text.split()) for text in statements(job, Path(RECORDED_ROOT))}
    events = [json.loads(line) for line in (HERE / "events" / f"{job.stem}.ndjson").open(encoding="utf-8")]
    said = {
        " ".join(event["job"]["facets"]["sql"]["query"].split()) for event in events if "sql" in event["job"]["facets"]
    }
    assert said <= wanted
    # DDL of Hudi tables and clones comes without its SQL
    assert said or job.stem == "15_customer_360_clone"
    assert {event["eventType"] for event in events} <= {"START", "RUNNING", "COMPLETE"}


@pytest.mark.parametrize("file", EVENT_FILES, ids=lambda file: file.stem)
def test_events_name_no_machine_and_no_person(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for absolute in re.findall(r"[\"' :](/[A-Za-z][^\"' ]*)", re.sub(r"https?://[^\"]*|#/\$defs[^\"]*", "", text)):
        assert absolute.startswith(RECORDED_ROOT), absolute
    assert "recording-" not in text
    assert not re.search(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", text)
    people = populate(AS_OF)
    for user in people.users[:3]:
        for value in (str(user.user_id), user.pan, user.phone, user.aadhaar_ref):
            assert value not in text
    for event in map(json.loads, text.splitlines()):
        assert not set(DROPPED_FACETS) & (event["run"]["facets"].keys() | event["job"]["facets"].keys())


def test_there_are_events_of_every_job() -> None:
    assert [file.stem for file in EVENT_FILES] == [job.stem for job in job_files()]


def test_cleaning_takes_the_machine_out_of_an_event() -> None:
    event = {
        "eventType": "COMPLETE",
        "run": {"runId": "r", "facets": {"environment-properties": {"user": "somebody"}, "parent": {"a": 1}}},
        "job": {"facets": {"sql": {"query": "INSERT OVERWRITE DIRECTORY '/scratch/x/lakehouse/f' SELECT 1"}}},
        "outputs": [{"namespace": "file", "name": "/scratch/x/lakehouse/f"}],
    }
    cleaned = clean_event(event, Path("/scratch/x/lakehouse"))
    assert "scratch" in json.dumps(event)
    assert "scratch" not in json.dumps(cleaned)
    assert cleaned["outputs"][0]["name"] == "/lakehouse/f"
    assert cleaned["run"]["facets"] == {"parent": {"a": 1}}


def test_the_packages_estate_file_requests_and_policy_are_valid() -> None:
    estate = load_estate(HERE / "pii-tracer.yaml")
    assert [writer.job for writer in estate.writers] == [job.stem for job in job_files()]
    assert load_request(HERE / "requests/REQ-2026-0117.yaml").subject.key == str(PERSON)
    assert load_request(HERE / "requests/REQ-2026-0124.yaml").subject.key == str(SECOND_PERSON)
    assert load_policy(HERE / "policy.yaml").allow_immediate_retention
    assert FORMER_CUSTOMER not in (PERSON, SECOND_PERSON)


def test_an_estate_without_s3_has_no_archives(tmp_path: Path) -> None:
    write_files(tmp_path / "estate", None, AS_OF)
    estate = load_estate(tmp_path / "estate/pii-tracer.yaml")
    assert estate.s3 is None
    assert estate.archives == ()
    request = load_request(tmp_path / "estate/requests/REQ-2026-0117.yaml")
    assert request.received == AS_OF - timedelta(days=2)
    assert len(list((tmp_path / "estate/lineage/events").iterdir())) == len(job_files())
