"""Whatever the history: every state afterwards is the state before minus the person, and the person is in no file."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.executors.formats.iceberg.kept_history.people import People, without
from tests.executors.world import EMAIL, UID, residue

ROWS = st.lists(
    st.sampled_from([(UID, EMAIL), (1001, "a@example.net"), (None, "b@example.net"), (1002, None)]), max_size=4
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ROWS),
        st.tuples(st.just("append to a branch"), ROWS),
        st.tuples(st.just("delete"), st.sampled_from(["id < 3", "region == 'north'", "score > 1.5", f"id == {UID}"])),
        st.tuples(st.just("tag"), st.none()),
        st.tuples(st.just("branch"), st.none()),
        st.tuples(st.just("rename"), st.none()),
        st.tuples(st.just("go back"), st.integers(0, 5)),
    ),
    min_size=2,
    max_size=7,
)


def lived(people: People, acts: list[tuple[str, object]]) -> None:
    number = 0
    for act, what in acts:
        table = people.table
        current = table.current_snapshot()
        branches = [name for name in table.refs() if name.startswith("b")]
        if act.startswith("append") and isinstance(what, list):
            rows = [(number + n, uid, email) for n, (uid, email) in enumerate(what)]
            number += len(rows)
            people.append(rows, branch=branches[-1] if branches and act != "append" else "main")
        elif current is None:
            continue
        elif act == "delete":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that no row matches
                table.delete(str(what))
        elif act == "tag":
            people.tag(f"t{len(table.refs())}", current.snapshot_id)
        elif act == "branch":
            people.branch(f"b{len(table.refs())}", current.snapshot_id)
        elif act == "rename":
            with table.update_schema() as update:
                update.rename_column(people.key, f"k{number}x{len(table.metadata.schemas)}")
        else:
            snapshots = table.metadata.snapshots
            table.manage_snapshots().set_current_snapshot(
                snapshots[int(str(what)) % len(snapshots)].snapshot_id
            ).commit()


@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(ACTS, st.sampled_from([1, 2]), st.sampled_from(["whole", "by region", "by key"]))
def test_any_history(acts: list[tuple[str, object]], version: int, partitions: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        people = People(Path(folder), version, partitions)
        lived(people, [("append", [(UID, EMAIL), (1001, "a@example.net")]), *acts])
        before = people.told()
        people.erase()
        assert people.told() == without(before)
        people.sweep()
        assert residue(people.folder) == []
        assert people.told() == without(before)
