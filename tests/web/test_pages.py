"""The pages of `serve`: what they show, what they never show, and that they change nothing."""

from __future__ import annotations

import base64
import http.client
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import uvicorn

from pii_tracer.app.state_views.overview import StateViews
from pii_tracer.cli.main import run
from pii_tracer.http_api.asgi_server import listening
from pii_tracer.model.errors import ExitCode
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.lease import Lease
from pii_tracer.web.application import application
from pii_tracer.web.server import LOOPBACK
from tests.review.plans import copy, plan
from tests.web.places import MARKUP, PLANTED, Place, place

TOKEN = "b5d1c2f6a7e84093"
LINK = re.compile(r'(?:href|src|action)="([^"]*)"')


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Client:
    port: int

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """One exchange. headers: with `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, answer.read().decode(), told)
        finally:
            connection.close()

    def walk(self) -> dict[str, Answer]:
        """Every page that links lead to, from the first one."""
        found: dict[str, Answer] = {}
        left = ["/"]
        while left:
            path = left.pop()
            if path in found or (path.startswith("/lineage/") and sum("/lineage/" in one for one in found) == 12):
                continue  # nodes of lineage can be opened in every order
            found[path] = self.get(path)
            if found[path].headers["content-type"].startswith("text/html"):
                left += [link.replace("&amp;", "&") for link in LINK.findall(found[path].text) if link[0] != "#"]
        return found


@contextmanager
def served(state: Place, token: str | None = None, tell: Callable[[str], None] = print) -> Iterator[Client]:
    with listening("127.0.0.1", 0) as at:
        app = application(StateViews(state.settings), LOOPBACK, token, tell)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, args=([at],))
        thread.start()
        try:
            yield Client(at.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def client(state: Place) -> Iterator[Client]:
    with served(state) as one:
        yield one


@pytest.fixture(scope="module")
def pages(client: Client) -> dict[str, Answer]:
    return client.walk()


def link(client: Client, page: str, name: str) -> str:
    """Where the link with this name leads."""
    found = re.search(rf'href="([^"]*)">[^<]*<code>{re.escape(name)}</code>', client.get(page).text)
    assert found, name
    return found[1]


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in sorted(folder.rglob("*"))}


def test_every_page_is_whole_names_no_person_and_asks_no_other_host(pages: dict[str, Answer]) -> None:
    assert len(pages) > 15
    for path, answer in pages.items():
        assert answer.status == 200, path
        for value in PLANTED:
            assert value.lower() not in answer.text.lower(), path
        assert "\x1b" not in answer.text, path
        assert not re.search(r"https?://|//[a-z]|<style|<img|\sstyle=|\son[a-z]+=[\"']|javascript:", answer.text), path
        assert not re.search(r"<script(?! src=\"/static/live.js\" defer></script>)", answer.text), path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")


def test_every_page_can_be_walked_without_a_mouse_and_heard(pages: dict[str, Answer]) -> None:
    for path, answer in pages.items():
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        text = answer.text
        assert '<html lang="en">' in text
        assert [text.count(part) for part in ("<main", "<h1", 'href="#main"')] == [1, 1, 1], path
        assert text.partition("<body")[0].count("<title>") == 1, path
        assert text.count("<table") == text.count("<caption") == text.count('tabindex="0"><table'), path
        levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
        assert all(after <= before + 1 for before, after in pairwise(levels)), path
        ids = re.findall(r'\sid="([^"]*)"', text)
        assert len(ids) == len(set(ids)), path
        assert not re.search(r"<a [^>]*>\s*</a>|>(here|more|click)</a>", text), path


def test_the_first_page_begins_with_the_verdict_and_names_all_that_blocks(client: Client) -> None:
    text = client.get("/").text
    assert "10 things in the way of erasing persons in time" in text
    for name in ("plan-stuck", "plan-failed", "plan-killed", "plan-residue", "half.plan.json", "reading 3"):
        assert f"<code>{name}</code>" in text
    assert text.index("in the way") < text.index("plan-residue") < text.index("half.plan.json")
    assert "plan-ready" not in text.partition("Plans that wait for approval")[0]


def test_all_gaps_of_a_blocked_plan_are_shown_and_its_copies_are_paged(client: Client, state: Place) -> None:
    text = client.get(link(client, "/plans", "plan-stuck")).text
    assert text.count('class="note bad"><strong>g') == 120
    assert text.index("Gaps that block this plan") < text.index("<h2>Copies")
    state.plan("wide", plan(plan_id="plan-wide", copies=[copy(f"c{n}", table=f"lake.w{n:04}") for n in range(450)]))
    path = link(client, "/plans", "plan-wide")
    text = client.get(path).text
    assert text.count('scope="row" class="name"><code>lake.w') == 200
    assert "1 to 200 of 450" in text
    assert "lake.w0449" in client.get(f"{path}?page=3").text
    assert "lake.w0449" in client.get(f"{path}?page=99999").text
    assert "lake.w0000" in client.get(f"{path}?page=-1").text
    found = client.get(f"{path}?q=W0123").text
    assert "lake.w0123" in found
    assert "1 copy found" in found


def test_approvals_say_what_they_are_and_that_nobody_checked_them(client: Client) -> None:
    text = client.get(link(client, "/plans", "plan-ready")).text
    assert "Signatures are not checked here" in text
    assert re.search(r"asha</th><td>dpo</td>.*present</td><td class=\"warn\">not checked", text)
    assert "it is for other bytes than this plan file" in text
    assert "the file cannot be read as an approval" in text


def test_broken_files_break_their_own_page_alone_and_names_are_only_names(client: Client) -> None:
    text = client.get(link(client, "/plans", "half.plan.json")).text
    assert "This is not a plan that pii-tracer wrote" in text
    listed = client.get("/plans").text
    assert MARKUP not in listed
    assert "&lt;img src=x onerror=" in listed
    assert "odd-\\udcff\\udcfe.plan.json" in listed
    marked = client.get(link(client, "/plans", "plan-marked")).text
    assert "\\x1b[31m\\u202e" in marked


@pytest.mark.parametrize(
    "name", ["../keys/estate.key", "..%2f..%2fetc%2fpasswd", "%00", "%ff%fe", "plan-ready", "a" * 4000]
)
@pytest.mark.parametrize("page", ["plans", "runs", "proofs", "lineage", "static"])
def test_no_address_leads_to_a_file(client: Client, page: str, name: str) -> None:
    answer = client.get(f"/{page}/{name}")
    assert answer.status == 404
    assert "There is no such page" in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_but_looking_is_answered(client: Client, method: str) -> None:
    for path in ("/", "/plans", "/static/live.js", "/nowhere"):
        answer = client.get(path, method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert client.get("/", "HEAD").text == ""


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1", "a:b"]
)
def test_a_foreign_name_for_this_address_is_not_answered(client: Client, host: str) -> None:
    assert client.get("/", host=host).status == 421
    assert client.get("/", host=f"LOCALHOST:{client.port}").status == 200
    assert client.get("/", host="[::1]:80").status == 200


def test_with_a_token_nobody_is_answered_without_it(state: Place) -> None:
    def basic(word: str) -> str:
        return "Basic " + base64.b64encode(f"me:{word}".encode()).decode()

    with served(state, TOKEN) as client:
        for path in ("/", "/static/style.css", "/nowhere"):
            refused = client.get(path)
            assert (refused.status, refused.headers["www-authenticate"][:5]) == (401, "Basic")
            for wrong in ("Bearer x", basic("x"), "Basic %%%", f"Digest {TOKEN}", TOKEN):
                assert client.get(path, authorization=wrong).status == 401
        assert client.get("/", authorization=f"Bearer {TOKEN}").status == 200
        assert client.get("/", authorization=basic(TOKEN)).status == 200


def test_beyond_loopback_nobody_serves_without_a_token(
    state: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PII_TRACER_SERVE_TOKEN", raising=False)
    options = ["serve", "--state", str(state.state), "--listen"]
    assert run([*options, "0.0.0.0:0"]) == ExitCode.USAGE
    assert "needs a token" in capsys.readouterr().err
    for token in ("short", "é" * 20):
        monkeypatch.setenv("PII_TRACER_SERVE_TOKEN", token)
        assert run([*options, "127.0.0.1:0"]) == ExitCode.USAGE
    assert run([*options, "nonsense"]) == ExitCode.USAGE


def test_a_run_is_seen_to_go_on_without_asking_anybody(client: Client, state: Place) -> None:
    folder = state.run(plan(plan_id="plan-live"))
    with Lease.acquire(folder.path):
        path = link(client, "/runs", "plan-live")
        assert "Running now" in client.get(path).text
        journal = Journal.open(folder.journal)
        for done in (1, 2):
            journal.append(Kind.STEP_VERIFIED, step=f"c1/{done}")
            assert f"Steps done: {done} of 2" in client.get(path).text
        assert "1 going on" in client.get("/").text
    assert "Stopped in the middle" in client.get(path).text
    folder.journal.write_bytes(folder.journal.read_bytes()[:-1] + b"x\n")
    assert "Cannot go on: the journal is broken" in client.get(path).text


def test_failed_steps_are_never_cut(client: Client, state: Place) -> None:
    made = plan(plan_id="plan-many", copies=[copy(f"c{n}") for n in range(300)])
    folder = state.run(made)
    journal = Journal.open(folder.journal)
    for step in made.steps[:250]:
        journal.append(Kind.STEP_FAILED, step=step.id, reason="the table is locked")
    text = client.get(link(client, "/runs", "plan-many")).text
    assert text.count("the table is locked") == 250
    assert "600 steps; failed and waiting ones first" in text


def test_the_readings_and_their_trend(client: Client, state: Place) -> None:
    text = client.get("/readiness").text
    assert "Reading 3 says no: 1 finding would keep a plan incomplete or late" in text
    assert "Score of 3 readings" in text
    assert "lake.s3.t00003" in client.get("/readiness?q=T00003").text
    trend = state.state / "readiness" / "trend.ndjson"
    kept = trend.read_bytes()
    try:
        trend.write_bytes(kept[:-20])
        answer = client.get("/readiness")
        assert (answer.status, "a line of the trend cannot be read" in answer.text) == (200, True)
        assert client.get("/").status == 200
    finally:
        trend.write_bytes(kept)


def test_a_proof_is_shown_as_a_claim(client: Client) -> None:
    text = client.get(link(client, "/proofs", "plan-1")).text
    assert "Not checked here. It says: not found in 2 files" in text
    assert "What it cannot prove" in text
    assert "<code>REQ-1</code>" in text


def test_a_proof_names_no_requests_of_other_evidence(client: Client, state: Place) -> None:
    file = state.state / "runs" / "plan-1" / "evidence" / "requests.jsonl"
    kept = file.read_bytes()
    file.write_bytes(kept.replace(b"REQ-1", b"REQ-9"))
    os.utime(state.state / "runs" / "plan-1" / "attestation.json")
    try:
        text = client.get(link(client, "/proofs", "plan-1")).text
        assert ("REQ-9" in text, "1 request, which the evidence does not name" in text) == (False, True)
    finally:
        file.write_bytes(kept)


def test_lineage_is_opened_one_hop_at_a_time_and_says_what_is_not_known(client: Client) -> None:
    path = link(client, "/lineage?q=lake.users", "lake.users")
    text = client.get(path).text
    assert "/lake/mails" in text
    assert "/lake/report" not in text
    assert "1 gap in what is shown" in text
    assert "say it" in text
    step = re.search(
        r'class="hop" href="([^"]*)" aria-label="[^"]*, 1 gap [^"]*– show what is beside file:/lake/mails"', text
    )
    assert step
    text = client.get(step[1].replace("&amp;", "&")).text
    assert "show what is beside file:/lake/report" in text
    assert "hide what is beside file:/lake/mails" in text
    # the stored graph has no literals
    assert "CASE WHEN users.k = &#39;…&#39; THEN 0 ELSE k END" in text
    step = re.search(r'class="hop" href="([^"]*)" aria-label="[^"]*– show what is beside file:/lake/report"', text)
    assert step
    text = client.get(step[1].replace("&amp;", "&")).text
    assert text.count("show what is beside file:/mart/wide_") == 12
    assert "8 more beside it" in text
    text = client.get(link(client, "/lineage?q=lake/report", "lake/report")).text
    assert text.count(">goes into<") == 20
    assert "gaps that may lead anywhere" in client.get("/lineage").text


def test_a_column_is_followed_along_its_values_alone(client: Client) -> None:
    path = link(client, "/lineage?q=lake.users", "lake.users")
    text = client.get(f"{path}?column=mail").text
    assert "/lake/users_copy.mail" in text
    assert "/lake/mails" not in text
    assert "Nothing is known of where it comes from" in text
    assert client.get(f"{path}?column=nothing").status == 404
    assert client.get("/lineage/0123456789abcdef?open=x,../..").status == 404


def test_looking_changes_nothing(tmp_path: Path) -> None:
    made = place(tmp_path)
    before = snapshot(tmp_path)
    with served(made) as client:
        client.walk()
    assert snapshot(tmp_path) == before


def test_an_empty_state_folder_has_pages_too(tmp_path: Path) -> None:
    with served(Place(tmp_path)) as client:
        found = client.walk()
    assert all(answer.status == 200 for answer in found.values())
    assert "no reading" in found["/"].text


def test_an_unexpected_error_shows_nothing_of_what_it_failed_at(state: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError(PLANTED[0])

    said: list[str] = []
    monkeypatch.setattr("pii_tracer.app.state_views.plan_list.PlanFolder.all", fail)
    with served(state, tell=said.append) as client:
        answer = client.get("/plans?q=" + quote(PLANTED[1]))
        assert answer.status == 500
        assert client.get("/runs").status == 200
    assert not any(value in answer.text + "".join(said) for value in PLANTED)
