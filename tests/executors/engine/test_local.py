"""Folders that are left of partitions."""

from __future__ import annotations

from pathlib import Path

from executors.engine.local_files import empty_folders, remove_empty


def test_folders_of_partitions_go_with_their_last_file(tmp_path: Path) -> None:
    for name in ("uid=7/day=1", "uid=7/day=2", "uid=8/day=1", "uid=9/_tmp", "plain"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "uid=8/day=1/.part.crc").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "uid=10").symlink_to(tmp_path / "elsewhere")
    found = empty_folders(tmp_path)
    assert [str(p.relative_to(tmp_path)) for p in found] == ["uid=7/day=2", "uid=7/day=1", "uid=7"]
    (tmp_path / "uid=7/day=2/part.parquet").touch()
    remove_empty(found)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "plain", "uid=10", "uid=7", "uid=8", "uid=9"]
    assert empty_folders(tmp_path) == []
