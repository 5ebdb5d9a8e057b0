"""A dbt project's files, or its manifest, into parts: models, snapshots and seeds with the SQL that they become."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pii_tracer.lineage.projects.dbt_yaml import Settings, line_of, read_properties, read_settings, setting, texts_of
from pii_tracer.lineage.projects.jinja_operations import Unrendered
from pii_tracer.lineage.projects.jinja_subset import Rendered, Surroundings, Text, macros_of, render, snapshots_of
from pii_tracer.lineage.projects.manifest import Compiled, Manifest
from pii_tracer.lineage.projects.parts import Part, PartKind, Parts, RepositoryFile, conflict_line, essence

PROJECT_FILE = "dbt_project.yml"
_YAML = (".yml", ".yaml")
_PLAIN = re.compile(r"\w+")
_IGNORED = ("target-path", "packages-install-path", "log-path", "test-paths", "analysis-paths")
_KINDS = {"table": PartKind.TABLE, "incremental": PartKind.INCREMENTAL, "snapshot": PartKind.SNAPSHOT,
          "view": PartKind.VIEW, "ephemeral": PartKind.VIEW, "materialized_view": PartKind.TABLE}  # fmt: skip


@dataclass(frozen=True)
class _Source:
    """A model's or snapshot's template, where it stands."""

    name: str
    file: RepositoryFile
    template: str
    kind: str
    below: PurePosixPath


def project_folders(files: Mapping[str, RepositoryFile]) -> list[str]:
    """Folders of dbt projects, those inside installed packages left out."""
    found = [str(PurePosixPath(p).parent) for p in files if PurePosixPath(p).name == PROJECT_FILE]
    return [f for f in sorted(found) if not {"dbt_packages", "dbt_modules"} & set(PurePosixPath(f).parts)]


def dbt_parts(folder: str, files: Mapping[str, RepositoryFile], manifest: Manifest | None) -> tuple[Parts, set[str]]:
    """The parts of one project, and the files that belong to it."""
    main = files[str(PurePosixPath(folder, PROJECT_FILE))]
    project = read_settings(main.path, main.text or "")
    project.problems += [(main.path, 1, main.unread)] if main.unread else []
    own = [f for p, f in files.items() if PurePosixPath(p).is_relative_to(folder)]
    taken = {f.path for f in own if any(project.inside(f.path, kind) is not None for kind in project.folders)}
    own = [f for f in own if all(project.inside(f.path, kind) is None for kind in _IGNORED)]
    macros: dict[str, str] = {}
    for file in own:
        if file.path.endswith(_YAML) and file.path in taken:
            project.problems += [(file.path, 1, file.unread)] if file.unread else []
            read_properties(file.path, file.text or "", project)
        elif project.inside(file.path, "macro-paths") is not None and file.path.endswith(".sql"):
            project.problems += [(file.path, 1, file.unread)] if file.unread else []
            macros |= macros_of(file.text or "")
    sources = [one for file in own for one in _templates(file, project)]
    for name, (path, relation) in project.snapshots.items():
        template = "select * from {{ " + relation + " }}"  # noqa: S608 - the template that dbt makes of it
        sources.append(_Source(name, files[path], template, "snapshots", PurePosixPath(name)))
    names = {source.name for source in sources} | set(_seeds(own, project))
    made = [(source, *_part(source, names, macros, project, manifest)) for source in sources]
    parts = [part for _, part, _ in made]
    hooks = [(source.name, source.file, hook) for source, _, found in made for hook in found]
    hooks += [(project.name, main, hook) for hook in project.hooks]
    parts += [_hook(n, *hook, names=names, macros=macros, project=project) for n, hook in enumerate(hooks, 1)]
    parts += [_seed(name, file, project) for name, file in _seeds(own, project).items()]
    parts += [_python(file) for file in own if file.path.endswith(".py") and project.inside(file.path, "model-paths")]
    return Parts(tuple(parts), project.schemas, project.tagged, tuple(project.problems)), taken


def _templates(file: RepositoryFile, project: Settings) -> Iterator[_Source]:
    if not file.path.endswith(".sql"):
        return
    stem = PurePosixPath(file.path).stem
    snapshots = snapshots_of(file.text or "")
    for kind, place in (("models", "model-paths"), ("snapshots", "snapshot-paths")):
        below = project.inside(file.path, place)
        if below is None:
            continue
        if snapshots:
            yield from (_Source(name, file, template, "snapshots", below) for name, template in snapshots)
        else:
            yield _Source(stem, file, file.text or "", kind, below)
        return


def _seeds(files: Sequence[RepositoryFile], project: Settings) -> dict[str, RepositoryFile]:
    csv = [f for f in files if f.path.endswith(".csv") and project.inside(f.path, "seed-paths") is not None]
    return {PurePosixPath(f.path).stem: f for f in csv}


def _seed(name: str, file: RepositoryFile, project: Settings) -> Part:
    """Its header alone is read, never a value."""
    header = (file.text or "").split("\n", 1)[0].strip().lstrip("\ufeff")
    columns = tuple(column.strip().strip('"') for column in re.split(r"[,;|\t]", header) if column.strip())
    return Part(
        name, file.path, PartKind.SEED, file.digest, unread=file.unread, broken=file.unread is not None, columns=columns
    )


def _python(file: RepositoryFile) -> Part:
    reason = file.unread or "it is a Python model, and the tool neither runs nor reads code"
    return Part(
        PurePosixPath(file.path).stem,
        file.path,
        PartKind.TABLE,
        file.digest,
        unread=reason,
        broken=file.unread is not None,
    )


def _part(
    source: _Source, names: set[str], macros: Mapping[str, str], project: Settings, manifest: Manifest | None
) -> tuple[Part, tuple[str, ...]]:
    """A model or snapshot, and the SQL of its hooks."""
    said = setting(project, source.kind, source.below, source.name)
    file = source.file
    unread, line = file.unread, 1
    if unread is None and not _PLAIN.fullmatch(source.name):
        unread = "the model's name is not made of letters, digits and underscores"
    if unread is None and not source.template.strip():
        unread = "the model is empty"
    if unread is None and (marked := conflict_line(file.text or "")):
        unread, line = "it has the markers of a merge conflict", marked
    broken = unread is not None
    texts: tuple[Text, ...] = ()
    reads: tuple[str, ...] = ()
    called: frozenset[str] = frozenset(_named_macros(source.template, macros))
    if unread is None:
        compiled = manifest.compiled(source.name, file.path, source.template) if manifest else None
        try:
            texts, said, reads = _texts(source, said, names, macros, project, compiled)
        except Unrendered as problem:
            unread, line = f"its template cannot be rendered without dbt: {problem.reason}", problem.line
    kind = _kind(source, said)
    appended = kind is PartKind.SNAPSHOT or (
        kind is PartKind.INCREMENTAL and (said.get("incremental_strategy") == "append" or not said.get("unique_key"))
    )
    used = [kind.value, repr(sorted((k, str(v)) for k, v in said.items() if k not in _DESCRIBING))]
    used += [essence(text.sql) for text in texts]
    if not texts:  # nobody knows what becomes of it: whatever it is made from counts
        used += [file.digest, source.template, *(macros[name] for name in sorted(_all_macros(called, macros)))]
    part = Part(
        name=source.name,
        file=file.path,
        kind=kind,
        fingerprint=hashlib.sha256("\0".join(used).encode()).hexdigest(),
        texts=texts,
        unread=unread,
        unread_line=line,
        broken=broken,
        reads=reads,
        appended=appended,
        settings={str(k): str(v) for k, v in _mapping(said.get("tblproperties")).items()},
        doubt=_doubt(source, said),
    )
    return part, tuple(hook for key in _HOOKS for hook in texts_of(said.get(key)))


_HOOKS = ("pre-hook", "pre_hook", "post-hook", "post_hook")


def _doubt(source: _Source, said: Mapping[str, Any]) -> str | None:
    kind = str(said.get("materialized", "view"))
    if source.kind == "snapshots" or kind in _KINDS or kind in _OTHERS:
        return None
    return "its materialization is not dbt's own, so its other writes are not known"


_OTHERS = frozenset({"dynamic_table", "streaming_table", "materializedview"})


def _hook(
    number: int,
    owner: str,
    file: RepositoryFile,
    hook: str,
    *,
    names: set[str],
    macros: Mapping[str, str],
    project: Settings,
) -> Part:
    """The SQL that runs beside a model, as a script of its own."""
    name, line = f"{owner}, hook {number}", line_of(file.text or "", hook.strip().split("\n")[0])
    try:
        around = Surroundings(macros, project.variables, _relation(names, project), owner, project.name)
        found = render(hook, around)
    except Unrendered as problem:
        reason = f"its hook cannot be rendered without dbt: {problem.reason}"
        digest = hashlib.sha256(hook.encode()).hexdigest()
        return Part(name, file.path, PartKind.SCRIPT, digest, unread=reason, unread_line=line)
    texts = tuple(Text(text.sql, (line,) * len(text.lines)) for text in found.texts)
    digest = hashlib.sha256("\0".join(essence(text.sql) for text in texts).encode()).hexdigest()
    return Part(name, file.path, PartKind.SCRIPT, digest, texts, reads=found.refs)


def _relation(names: set[str], project: Settings) -> Callable[[str, tuple[str, ...]], str | None]:
    """What `ref` and `source` mean in a project."""

    def relation(kind: str, given: tuple[str, ...]) -> str | None:
        if kind == "source":
            return project.sources.get((given[0], given[1])) if len(given) == 2 else None
        plain = given[-1].rsplit("_v", 1)[0]
        return given[-1] if given[-1] in names else plain if plain in names else None

    return relation


_DESCRIBING = frozenset({"name", "description", "docs", "meta", "tests", "data_tests", "tags"})


def _texts(
    source: _Source,
    said: dict[str, Any],
    names: set[str],
    macros: Mapping[str, str],
    project: Settings,
    compiled: Compiled | None,
) -> tuple[tuple[Text, ...], dict[str, Any], tuple[str, ...]]:
    if compiled is not None:
        config = {**said, **{k: v for k, v in compiled.config.items() if v is not None}}
        return (compiled.text,), config, compiled.reads

    def rendered(incremental: bool) -> Rendered:
        around = Surroundings(
            macros, project.variables, _relation(names, project), source.name, project.name, incremental
        )
        return render(source.template, around)

    found = rendered(said.get("materialized") == "incremental")
    config = {**said, **found.config}
    if config.get("materialized") == "incremental" and said.get("materialized") != "incremental":
        found = rendered(True)
    return found.texts, config, found.refs


def _kind(source: _Source, said: Mapping[str, Any]) -> PartKind:
    """A materialization that is not known here stores rows, for all that anybody knows."""
    if source.kind == "snapshots":
        return PartKind.SNAPSHOT
    return _KINDS.get(str(said.get("materialized", "view")), PartKind.TABLE)


def _named_macros(text: str, macros: Mapping[str, str]) -> set[str]:
    return {name for name in re.findall(r"\b\w+\b", text) if name in macros} if macros else set()


def _all_macros(names: frozenset[str], macros: Mapping[str, str]) -> set[str]:
    """Macros that a template names, and those that these name."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _named_macros(macros[name], macros)
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
