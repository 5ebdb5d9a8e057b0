"""A change of SQL models, reviewed before it is merged: what it does to finding and erasing persons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.model_review.git_files import Repository
from pii_tracer.model.errors import ConfigError, UsageError
from pii_tracer.model.model_review import ModelReview

if TYPE_CHECKING:
    from pii_tracer.config.estate_file import Estate
    from pii_tracer.lineage.projects.parts import Parts, RepositoryFile
    from pii_tracer.lineage.projects.project_lineage import Known

WORKING_TREE = "working tree"
_MOST_MANIFEST = 500_000_000


@dataclass(frozen=True)
class ReviewInputs:
    """What a review may read beside the repository. lineage: the graph of a harvest. manifest, base_manifest: of dbt,
    for the head and for the base. dialect: of the SQL, before the estate's."""

    estate_file: Path | None = None
    lineage: Path | None = None
    dialect: str | None = None
    manifest: Path | None = None
    base_manifest: Path | None = None


def review_models(
    repository: Path, base: str, *, head: str | None = None, inputs: ReviewInputs | None = None
) -> ModelReview:
    """Compare the models of a repository's head with those at the commit where it left the base.

    Without a head, the working tree is compared. Nothing of the repository is run, and no warehouse is asked.

    Raises:
        UsageError: no repository, no such commit, or a shallow clone that lacks one.
        ConfigError: the estate file cannot be read.
        LineageError: lineage graph, schema file or manifest cannot be read, or the dialect is not known.
    """
    from pii_tracer.config.estate_file import load_estate
    from planners.model_review.whole_review import Sides, whole_review

    given = inputs or ReviewInputs()
    estate = load_estate(given.estate_file) if given.estate_file is not None else None
    known = _known(estate, given)
    git = Repository(repository)
    tip = git.commit(head if head is not None else "HEAD")
    start = git.fork_point(git.commit(base), tip)
    before, _ = _side(git, start, given.base_manifest)
    after, files = _side(git, tip if head is not None else None, given.manifest)
    texts = {path: file.text for path, file in files.items() if file.text is not None}
    return whole_review(Sides(start, tip if head is not None else WORKING_TREE, before, after, texts), known, estate)


def _known(estate: Estate | None, given: ReviewInputs) -> Known:
    from pii_tracer.lineage.graph.graph_file import load
    from pii_tracer.lineage.projects.project_lineage import Known
    from pii_tracer.lineage.sources.declared_schemas import schema_files
    from pii_tracer.lineage.sql.known_dialects import known_dialect

    upstream = load(given.lineage) if given.lineage is not None else None
    if estate is None or given.estate_file is None:
        return Known(known_dialect(given.dialect or "spark"), upstream=upstream)
    schemas = schema_files(estate.lineage.schemas, given.estate_file.resolve().parent)
    tables = [table.name for catalog in estate.catalogs.values() for table in catalog.tables]
    tables += [name for subject in estate.subjects for name, _ in subject.by_table]
    return Known(
        known_dialect(given.dialect or estate.lineage.dialect),
        {name: tuple((c.name, c.type) for c in columns) for name, columns in schemas.items()},
        tuple(dict.fromkeys(tables)),
        upstream,
    )


def _side(git: Repository, commit: str | None, manifest: Path | None) -> tuple[Parts, dict[str, RepositoryFile]]:
    """One side's parts and files. commit: None for the working tree."""
    from pii_tracer.lineage.projects.dbt_parts import PROJECT_FILE, project_folders
    from pii_tracer.lineage.projects.revision_parts import file_of, parts_of, wanted

    def read(of: frozenset[str], only: Iterable[str] = ()) -> dict[str, RepositoryFile]:
        def asked(path: str) -> bool:
            return path.rpartition("/")[2] in only if only else wanted(path, of)

        found = git.working_tree(asked) if commit is None else git.at(commit, asked)
        return {one.path: file_of(one.path, one.digest, one.data, one.problem) for one in found}

    files = read(frozenset(project_folders(read(frozenset(), (PROJECT_FILE,)))))
    return parts_of(files, _bytes(manifest) if manifest is not None else None, str(manifest)), files


def _bytes(file: Path) -> bytes:
    try:
        if file.stat().st_size > _MOST_MANIFEST:
            raise UsageError(
                "the manifest is larger than 500 MB", where=str(file), todo="name the manifest file of this dbt project"
            )
        return file.read_bytes()
    except OSError as error:
        reason = type(error).__name__
        raise ConfigError(
            f"the manifest cannot be read ({reason})", where=str(file), todo="run `dbt compile`"
        ) from None
