"""INSERT goes by position: where nobody knows the positions, names count if they fit, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.edges import EdgeType
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.model.datasets import Column, DatasetId

ALIASES = {
    name: DatasetId(namespace="file", name=f"/lake/{name}") for name in ("crm.m", "exp.r", "exp.s", "exp.t", "exp.u")
}
Way = tuple[str, ...]
WAY = ("member_no", "referred_by")


def columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type="string") for name in names)


def pairs(
    folder: Path, text: str, target: str = "exp.r", *, loose: tuple[str, ...] = ("exp.r",), declared: Way = ()
) -> tuple[set[tuple[str, str]], bool]:
    """Columns that go into columns of a table, and whether something is not known."""
    (folder / "jobs.sql").write_text(text)
    given = Given(
        folder,
        aliases=ALIASES,
        schemas={
            "crm.m": columns(*WAY, "email"),
            "exp.r": columns(*reversed(WAY)),
            "exp.s": columns(*WAY),
            "exp.t": columns("a", "b"),
        },
        loose=frozenset(loose),
        declared={"exp.r": columns(*declared)} if declared else {},
    )
    graph = harvest_all(LineageSources(sql=("jobs.sql",)), given).graph
    edges = [e for e in graph.edges_into(ALIASES[target]) if e.type is EdgeType.DIRECT]
    return {(e.source.column, e.target.column) for e in edges}, bool(graph.gaps)


AS_NAMED = {(name, name) for name in WAY}
EVERYWHERE = {(one, other) for one in WAY for other in WAY}


def test_the_order_of_the_first_file_counted_before(tmp_path: Path) -> None:
    text = "INSERT OVERWRITE exp.r SELECT member_no, referred_by FROM crm.m WHERE email IS NOT NULL"
    assert pairs(tmp_path, text, loose=()) == ({WAY, WAY[::-1]}, False), "a table's own order goes by position"
    assert pairs(tmp_path, text) == (AS_NAMED, False)


def test_names_that_do_not_fit_are_not_guessed_at(tmp_path: Path) -> None:
    text = "INSERT OVERWRITE exp.r SELECT member_no AS x, referred_by AS y FROM crm.m"
    assert pairs(tmp_path, text) == (EVERYWHERE, True)
    assert pairs(tmp_path, text, declared=WAY) == (AS_NAMED, False), "its declared schema tells the order"


def test_a_column_list_or_a_created_table_tells_the_order(tmp_path: Path) -> None:
    listed = "INSERT INTO exp.r (member_no, referred_by) SELECT member_no AS x, referred_by AS y FROM crm.m"
    assert pairs(tmp_path, listed) == (AS_NAMED, False)
    created = "CREATE TABLE exp.r (member_no STRING, referred_by STRING) USING json;\n"
    text = created + "INSERT INTO exp.r SELECT member_no AS x, referred_by AS y FROM crm.m"
    assert pairs(tmp_path, text) == (AS_NAMED, False)


def test_a_star_over_such_a_table_has_no_positions_either(tmp_path: Path) -> None:
    star = "INSERT OVERWRITE {} SELECT * FROM exp.r"
    assert pairs(tmp_path, star.format("exp.s"), "exp.s", loose=()) == ({WAY, WAY[::-1]}, False)
    assert pairs(tmp_path, star.format("exp.s"), "exp.s") == (AS_NAMED, False)
    assert pairs(tmp_path, star.format("exp.t"), "exp.t") == ({(n, c) for n in WAY for c in "ab"}, True)
    named = "INSERT OVERWRITE exp.t SELECT member_no, referred_by FROM (SELECT * FROM exp.r)"
    assert pairs(tmp_path, named, "exp.t") == ({("member_no", "a"), ("referred_by", "b")}, False)


def test_a_union_of_stars_pairs_by_name_or_not_at_all(tmp_path: Path) -> None:
    union = "INSERT OVERWRITE exp.s SELECT * FROM exp.r UNION ALL SELECT "
    assert pairs(tmp_path, union + "member_no, referred_by FROM crm.m", "exp.s") == (AS_NAMED, False)
    assert pairs(tmp_path, union + "member_no AS x, referred_by AS y FROM crm.m", "exp.s")[1]
