"""The files of one side of a repository, into parts: dbt projects first, then every other SQL file as a script."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from pii_tracer.lineage.projects.dbt_parts import PROJECT_FILE, dbt_parts, project_folders
from pii_tracer.lineage.projects.jinja_subset import Text
from pii_tracer.lineage.projects.manifest import Manifest
from pii_tracer.lineage.projects.parts import Part, PartKind, Parts, RepositoryFile, conflict_line, essence

SQL = frozenset({".sql", ".hql", ".ddl"})
_OF_DBT = frozenset({".yml", ".yaml", ".csv", ".py"})


def wanted(path: str, projects: frozenset[str]) -> bool:
    """Whether a file can say something of models. projects: folders of dbt projects."""
    pure = PurePosixPath(path)
    if pure.suffix.lower() in SQL or pure.name == PROJECT_FILE:
        return True
    return pure.suffix.lower() in _OF_DBT and any(pure.is_relative_to(folder) for folder in projects)


def file_of(path: str, digest: str, data: bytes | None, problem: str | None) -> RepositoryFile:
    """A file as text, with one sign for the end of a line."""
    if data is None:
        return RepositoryFile(path, digest, unread=problem or "it is not there")
    if b"\0" in data:
        return RepositoryFile(path, digest, unread="it is binary")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return RepositoryFile(path, digest, unread="it is not UTF-8")
    return RepositoryFile(path, hashlib.sha256(text.encode()).hexdigest(), text)


def parts_of(files: Mapping[str, RepositoryFile], manifest: bytes | None, shown: str) -> Parts:
    """Everything that one side defines. manifest: of its dbt project.

    Raises:
        LineageError: the manifest is none.
    """
    found: list[Part] = []
    schemas: dict[str, tuple[tuple[str, str], ...]] = {}
    tagged: dict[str, tuple[str, ...]] = {}
    problems: list[tuple[str, int, str]] = []
    used: set[str] = set()
    compiled = None
    if manifest is not None:
        compiled = Manifest.of(
            manifest, shown, "\n".join(f.text or "" for f in files.values() if f.path.endswith(".sql"))
        )
    for folder in project_folders(files):
        parts, taken = dbt_parts(folder, files, compiled)
        used |= taken
        known = {part.name for part in found}
        for part in parts.parts:
            if part.name in known:
                problems.append((part.file, 1, f"two projects of the repository have a model {part.name}"))
            else:
                found.append(part)
                known.add(part.name)
        schemas |= parts.schemas
        tagged |= parts.tagged
        problems += parts.problems
    scripts = [f for p, f in files.items() if PurePosixPath(p).suffix.lower() in SQL and p not in used]
    return Parts((*found, *map(_script, scripts)), schemas, tagged, tuple(problems))


def _script(file: RepositoryFile) -> Part:
    text = file.text or ""
    unread, line = file.unread, 1
    if unread is None and (marked := conflict_line(text)):
        unread, line = "it has the markers of a merge conflict", marked
    if unread is not None:
        return Part(file.path, file.path, PartKind.SCRIPT, file.digest, (), unread, line, broken=True)
    lines = tuple(range(1, text.count("\n") + 2))
    digest = hashlib.sha256(essence(text).encode()).hexdigest()
    return Part(file.path, file.path, PartKind.SCRIPT, digest, (Text(text, lines),))
