"""The graph's file: equal graphs give equal files, and a file is whole, unchanged and known, or refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.lineage.graph.array_file import FORMAT_VERSION, MAGIC, pack
from pii_tracer.lineage.graph.arrays import (
    KINDS,
    SUBTYPES,
    TYPES,
    kind_code,
    kind_of,
)
from pii_tracer.lineage.graph.canonical_facts import Facts, collect
from pii_tracer.lineage.graph.edges import NOT_STORED, EdgeType, JobRef, Subtype
from pii_tracer.lineage.graph.graph_file import load, save
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.graph.string_pool import Pool
from pii_tracer.model.errors import LineageError
from tests.leaks import Person, leaks
from tests.lineage.graphs import ds, edge, facts, graph_of


def saved(graph: LineageGraph, folder: Path) -> Path:
    file = folder / "lineage.graph"
    save(graph, file)
    return file


def test_stored_and_loaded_is_equal_and_stable(tmp_path: Path):
    graph = graph_of(("/a", "/b"), ("/b", "/c"))
    file = tmp_path / "deep" / "lineage.graph"
    save(graph, file)
    before = file.read_bytes()
    save(load(file), file)
    assert file.read_bytes() == before
    assert load(file).digest() == graph.digest()
    assert [p.name for p in file.parent.iterdir()] == ["lineage.graph"]
    # names in it can be persons' values
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_file_has_no_literal_of_a_statement(tmp_path: Path):
    """It outlives the runs: `close` destroys the sealed values, and this file stays."""
    text = "INSERT INTO b SELECT k FROM a WHERE mail = 'mira@x.example' AND k = 4417700102"
    job = JobRef(
        job="j", sql=text, inputs=(ds("/a"),), output=ds("/b"), statement=text, views=(("v", "SELECT 4417700102"),),
        filled=(("k", "4417700102"), ("n", "")),
    )  # fmt: skip
    told = edge("/a", "/b").model_copy(update={"expression": "CASE WHEN a.mail = 'mira@x.example' THEN a.k END"})
    graph = LineageGraph(collect([told], [], [job], [], {}, {}))
    file = saved(graph, tmp_path)
    assert leaks(Person(("mira@x.example", "4417700102")), [tmp_path]) == []
    (kept,) = load(file).jobs_into(ds("/b"))
    assert kept.statement == kept.sql == NOT_STORED
    assert kept.views == (("v", NOT_STORED),)
    assert kept.filled == (("n", ""),)
    assert load(file).edges_into(ds("/b"))[0].expression == "CASE WHEN a.mail = '…' THEN a.k END"
    # what plans and runs use
    assert graph.jobs_into(ds("/b"))[0].sql == text


@settings(max_examples=150, deadline=None)
@given(facts(), st.randoms(use_true_random=False))
def test_facts_in_any_order_give_one_file_and_come_back(
    tmp_path_factory: pytest.TempPathFactory, made: Facts, chance: random.Random
):
    def shuffled(items):
        return tuple(chance.sample(items, len(items)))

    mixed = Facts(**{name: shuffled(getattr(made, name)) for name in Facts.model_fields})
    folder = tmp_path_factory.mktemp("store")
    file = saved(LineageGraph(made), folder)
    first = file.read_bytes()
    assert saved(LineageGraph(mixed), folder).read_bytes() == first
    assert load(file).facts == made
    assert LineageGraph(mixed).digest() == load(file).digest() == LineageGraph(made).digest()


def test_equal_facts_in_any_order_give_one_digest():
    a, b = edge("/a", "/b"), edge("/b", "/c")
    job = JobRef(job="j", sql=None, inputs=(ds("/a"),), output=ds("/b"))
    one = LineageGraph(collect([a, b, a], [], [job], [], {}, {}))
    two = LineageGraph(collect([b, a], [], [job, job], [], {}, {}))
    assert one.digest() == two.digest()
    assert one.digest() != LineageGraph(collect([a], [], [job], [], {}, {})).digest()


def test_an_empty_graph_can_be_stored(tmp_path: Path):
    graph = load(saved(LineageGraph(Facts()), tmp_path))
    assert graph.facts == Facts()
    assert graph.datasets() == ()


def test_a_loaded_graph_stays_when_another_takes_its_place(tmp_path: Path):
    file = saved(graph_of(("/a", "/b")), tmp_path)
    old = load(file)
    save(graph_of(("/x", "/y")), file)
    assert old.datasets() == (ds("/a"), ds("/b"))
    assert load(file).datasets() == (ds("/x"), ds("/y"))


def test_missing_old_and_foreign_files_are_refused(tmp_path: Path):
    with pytest.raises(LineageError, match="no lineage graph"):
        load(tmp_path / "none")
    for text, said in (
        ('{"format_version": 1, "facts": {}}', "older format"),
        ("", "cannot be read"),
        ("PK\x03\x04", "not a lineage graph"),
        ("pii-tracer graph", "is truncated"),
        ("pii-tr", "is truncated"),
    ):
        (tmp_path / "file").write_text(text)
        with pytest.raises(LineageError, match=said) as caught:
            load(tmp_path / "file")
        assert caught.value.todo
    with pytest.raises(LineageError, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("version", "said"), [(FORMAT_VERSION + 1, "supports only up to"), (FORMAT_VERSION - 1, "older format")]
)
def test_other_versions_are_refused(tmp_path: Path, version: int, said: str):
    file = saved(graph_of(("/a", "/b")), tmp_path)
    data = bytearray(file.read_bytes())
    data[16:20] = struct.pack("<I", version)
    file.write_bytes(data)
    with pytest.raises(LineageError, match=said):
        load(file)


def test_every_flipped_byte_and_every_cut_is_refused(tmp_path: Path):
    file = saved(graph_of(("/a", "/b"), ("/b", "/c"), ("/c", "/a")), tmp_path)
    data = file.read_bytes()
    chance = random.Random(7)
    for place in [*range(160), *chance.sample(range(len(data)), 300), len(data) - 1]:
        file.write_bytes(data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :])
        with pytest.raises(LineageError):
            load(file)
    for length in [*range(1, 80), *chance.sample(range(len(data)), 60), len(data) - 1]:
        file.write_bytes(data[:length])
        with pytest.raises(LineageError):
            load(file)
    file.write_bytes(data + b"\0")
    with pytest.raises(LineageError, match="instead of"):
        load(file)


def numbers(graph: LineageGraph, name: str, value: int) -> LineageGraph:
    wrong = np.array(getattr(graph.columnar, name))
    wrong[-1] = value
    return LineageGraph.of(dataclasses.replace(graph.columnar, **{name: wrong}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("edge_source", 99), ("edge_start", 99), ("edge_kind", KINDS), ("edge_expression", 1), ("order", 99),
        ("forward_edge", 99), ("forward_target", 99), ("forward_direct", 0), ("link_source", 99), ("column_name", 99),
        ("dataset_role", 4), ("dataset_namespace", 1), ("alias_dataset", 99), ("column_start", 0),
        # what leads somewhere, and to the wrong place
        ("forward_edge", 0), ("forward_target", 0), ("order", 0), ("feed_target", 0), ("link_source", 0),
        ("edge_source", 0), ("edge_kind", 20), ("edge_direct", 1),
    ],
)  # fmt: skip
def test_a_file_whose_numbers_lead_nowhere_is_refused_though_its_digest_is_right(tmp_path: Path, name: str, value: int):
    file = saved(numbers(graph_of(("/a", "/b"), ("/b", "/c")), name, value), tmp_path)
    with pytest.raises(LineageError, match="broken"):
        load(file)


def test_a_file_whose_texts_are_broken_is_refused_though_its_digest_is_right(tmp_path: Path):
    made = graph_of(("/a", "/b")).columnar
    cut = Pool(np.array([0, 1, 2], np.uint64), np.frombuffer("é".encode(), np.uint8))
    overlapping = Pool(np.array([0, 9, 2], np.uint64), np.frombuffer(b"ab", np.uint8))
    foreign = Pool(np.array([0, 1, 2], np.uint64), np.frombuffer(b"\xff\xfe", np.uint8))
    for pool in (cut, overlapping, foreign):
        file = saved(LineageGraph.of(dataclasses.replace(made, words=pool)), tmp_path)
        with pytest.raises(LineageError, match="broken: words"):
            load(file)
    file = saved(LineageGraph.of(dataclasses.replace(made, gaps=Pool.of(["[]"]))), tmp_path)
    with pytest.raises(LineageError, match="broken"):
        load(file).gaps  # noqa: B018


def forged(graph: LineageGraph, listed: bytes) -> bytes:
    """The graph's file with another list of lengths, and the right digest."""
    _, old, *rest = [bytes(piece) for piece in pack(graph.columnar)[0]]
    body = listed.ljust(len(old)) + b"".join(rest)
    fixed = struct.pack("<IIQ", FORMAT_VERSION, len(listed), 64 + len(body))
    return MAGIC + fixed + hashlib.sha256(fixed + body).digest() + body


@pytest.mark.parametrize(
    "change",
    [
        lambda given: b"[]",
        lambda given: b"{}",
        lambda given: b"{" * 5000,
        lambda given: b"\xff",
        lambda given: json.dumps({**given, "edge_source": -1}).encode(),
        lambda given: json.dumps({**given, "edge_source": "2"}).encode(),
        lambda given: json.dumps({**given, "order": 10**9}).encode(),
        lambda given: json.dumps({**given, "order": 10**30}).encode(),
        lambda given: json.dumps({**given, "gaps.data": 1}).encode(),
    ],
)
def test_a_wrong_list_of_lengths_is_refused_though_its_digest_is_right(tmp_path: Path, change):
    graph = graph_of(("/a", "/b"), ("/b", "/c"))
    listed = bytes(pack(graph.columnar)[0][1])
    file = tmp_path / "lineage.graph"
    file.write_bytes(forged(graph, listed))
    assert load(file).datasets() == graph.datasets()
    file.write_bytes(forged(graph, change(json.loads(listed))))
    with pytest.raises(LineageError, match="broken"):
        load(file)


def test_kinds_have_their_numbers_for_ever():
    assert set(SUBTYPES) == set(Subtype)
    assert set(TYPES) == set(EdgeType)
    kinds = [(t, s, m) for t in TYPES for s in SUBTYPES for m in (False, True)]
    assert [kind_code(*k) for k in kinds] == list(range(KINDS))
    assert [kind_of(n) for n in range(KINDS)] == kinds


CRASH = """
import os, resource, signal, sys
from pathlib import Path
from pii_tracer.lineage.graph.graph_file import save
from tests.leaks import Person, leaks
from tests.lineage.graphs import graph_of
file, point = Path(sys.argv[1]), sys.argv[2]

def die(*_args, **_more):
    os.kill(os.getpid(), signal.SIGKILL)

if point == "fsync":
    os.fsync = die
elif point == "replace":
    Path.replace = die
else:
    # the system kills the process when its file grows beyond the limit: in the middle of the write
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(point), int(point)))
save(graph_of(("/new", "/graph")), file)
"""


@pytest.mark.parametrize("point", ["0", "1", "64", "700", "fsync", "replace"])
def test_a_crash_while_writing_leaves_the_old_graph(tmp_path: Path, point: str):
    file = saved(graph_of(("/old", "/graph")), tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(file), point], cwd=Path(__file__).parents[2], capture_output=True, check=False
    )
    assert done.returncode < 0, done.stderr
    assert set(load(file).datasets()) == {ds("/old"), ds("/graph")}
    pieces, _ = pack(graph_of(("/new", "/graph")).columnar)
    assert sum(map(len, pieces)) > 700, "the last limit lies inside the file"
