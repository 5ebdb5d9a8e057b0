"""`trace` and `gaps` on the command line: what a name means, and what is said when it means nothing or too much."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pii_tracer.cli.main import run
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import (
    EdgeType,
    Evidence,
    LineageGap,
    Subtype,
)
from pii_tracer.lineage.graph.graph_file import save
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import ExitCode
from tests.lineage.graphs import NASTY, ds, edge

ESTATE = """\
version: 1
estate: t
environment: local
catalogs: {}
roots: [data]
lineage: {sql: [jobs.sql]}
subjects: [{name: user, source: lake.users, key: uid}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pii-tracer.yaml").write_text(ESTATE)
    monkeypatch.chdir(tmp_path)
    gaps = [LineageGap(dataset=ds("/lake1/prod/t"), kind="no_columns", reason="why", evidence="e:1", closes="say it")]
    facts = collect(
        [edge("/lake1/prod/t", "/x", "K"), edge("/lake2/prod/t", NASTY)],
        [],
        [],
        gaps,
        {ds("/lake2/prod/t"): (Column(name="k", type="int"),)},
        {"lake1.prod.t": ds("/lake1/prod/t"), "lake2.prod.t": ds("/lake2/prod/t")},
    )
    save(LineageGraph(facts), tmp_path / ".pii-tracer" / "lineage.graph")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run([*words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("folder")
def test_an_ambiguous_name_lists_what_it_can_mean(capsys: pytest.CaptureFixture[str]):
    code, out, err = said(capsys, "trace", "prod.t")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "`prod.t` can mean 2 datasets" in err
    assert "file:/lake1/prod/t (lake1.prod.t), file:/lake2/prod/t (lake2.prod.t)" in err
    code, _, err = said(capsys, "trace", "prod.t.k")
    assert code == ExitCode.USAGE
    assert "can mean 2 datasets" in err
    assert said(capsys, "gaps", "t")[0] == ExitCode.USAGE


@pytest.mark.usefixtures("folder")
def test_a_column_in_any_case_and_one_that_is_not_there(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "trace", "lake1.prod.t.k")
    assert code == ExitCode.DONE
    assert out.splitlines()[:2] == ["file:/lake1/prod/t.K", "└── file:/x"]
    code, out, err = said(capsys, "trace", "lake1.prod.t.missing")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "has no column `missing`" in err
    assert "use one of: K" in err
    code, _, err = said(capsys, "trace", "nowhere.at.all")
    assert code == ExitCode.USAGE
    assert "`nowhere.at.all` is not in the lineage" in err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("fmt", ["text", "json", "mermaid", "dot", "html"])
def test_every_format_is_harmless(capsys: pytest.CaptureFixture[str], fmt: str):
    code, out, _ = said(capsys, "trace", "lake2.prod.t", "--format", fmt)
    assert code == ExitCode.DONE
    assert "\x1b" not in out
    if fmt == "json":
        assert json.loads(out)["links"][0]["target"]["name"] == NASTY
    if fmt == "html":
        assert "default-src 'none'" in out
        assert not re.search(r"<script|<link|<img|https?://|url\(|<b>", out)
        assert "x&#34;]; evil `&lt;b&gt;\\x1b[31m" in out


@pytest.mark.usefixtures("folder")
def test_gaps_by_dataset(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "gaps")
    assert code == ExitCode.DONE
    assert out.splitlines() == [
        "file:/lake1/prod/t",
        "  no_columns: why",
        "    seen in e:1; to close it: say it",
        "1 gap in 1 place",
    ]
    assert said(capsys, "gaps", "lake2.prod.t")[1] == "no gaps\n"
    assert [g["kind"] for g in json.loads(said(capsys, "gaps", "lake1.prod.t", "--format", "json")[1])] == [
        "no_columns"
    ]


@pytest.mark.parametrize("fmt", ["text", "json", "mermaid", "dot", "html"])
def test_no_format_shows_what_stands_in_literals(folder: Path, capsys: pytest.CaptureFixture[str], fmt: str):
    told = {"type": EdgeType.DIRECT, "subtype": Subtype.TRANSFORMATION}
    events = edge("/a", "/b", **told, evidence=(Evidence(source="openlineage", where="e:1"),))
    sql = edge("/a", "/b", expression="CASE WHEN a.k = 'mira@x.example' THEN \"zoe\" /* ana */ END", into="v", **told)
    both = edge(
        "/a", "/b", expression="if(a.k = 'mira@x.example', 1, 2)", evidence=(Evidence(source="sql", where="s:1"),)
    )
    save(LineageGraph(collect([events, sql, both], [], [], [], {}, {})), folder / ".pii-tracer" / "lineage.graph")
    code, out, _ = said(capsys, "trace", "/a", "--format", fmt)
    assert code == ExitCode.DONE
    assert not re.search("mira|zoe|ana ", out)
    if fmt in ("text", "json"):
        assert "'…'" in out


def test_a_broken_and_a_missing_graph_are_said(folder: Path, capsys: pytest.CaptureFixture[str]):
    file = folder / ".pii-tracer" / "lineage.graph"
    file.write_bytes(file.read_bytes()[:-1])
    code, out, err = said(capsys, "trace", "lake1.prod.t")
    assert (code, out) == (ExitCode.ERROR, "")
    assert "harvest again" in err
    file.unlink()
    code, _, err = said(capsys, "gaps")
    assert code == ExitCode.USAGE
    assert "pii-tracer harvest" in err
