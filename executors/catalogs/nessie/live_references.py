"""The references of a Nessie catalog that have a table, asked anew each time: what they reach must not be removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from executors.context import ExecutionContext
from executors.engine.local_files import local_path
from executors.formats.iceberg.orphan_files import list_table, loose, refuse_missing
from executors.sweep.store_folder_sweep import Listed
from pii_tracer.common.plurals import counted
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.lake.catalogs.default_table_format import NESSIE_TABLE
from pii_tracer.lake.catalogs.nessie.client import NessieClient, Reference
from pii_tracer.lake.catalogs.nessie.tables import KINDS, table_name
from pii_tracer.lake.formats.iceberg.nessie_references import deletes_metadata
from pii_tracer.lake.formats.iceberg.snapshot_expiry import reached
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.inventory import NESSIE_WORK_BRANCH
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import local_path as placed
from pii_tracer.model.plan import Step

_LOOKS = 5


@dataclass(frozen=True)
class LiveHead:
    """A reference that has the table now. table: its name in Spark SQL, None where it has none."""

    reference: Reference
    table: str | None
    metadata: Path

    @property
    def title(self) -> str:
        """As plans write it: `nessie-branch dev`."""
        return _title(self.reference)


def client_of(ctx: ExecutionContext, step: Step) -> NessieClient:
    """The client of a step's catalog.

    Raises:
        RunError: the estate file names no such Nessie catalog.
    """
    name = str(step.parameters["table"]).partition(".")[0]
    catalog = ctx.estate.catalogs.get(name)
    if catalog is None or catalog.type is not CatalogType.NESSIE:
        raise RunError("the estate file has no such Nessie catalog", where=name, todo="plan again")
    return NessieClient(name, catalog)


def heads(ctx: ExecutionContext, step: Step) -> tuple[LiveHead, ...]:
    """Every reference that has the step's table, the work branch left out.

    The table is known by Nessie's id, which every branch and every name of it has in common.

    Raises:
        RunError: a reference reaches the table that the plan does not know, or one has it no longer.
        EstateError: the server does not answer.
    """
    client, name = client_of(ctx, step), str(step.parameters["table"]).partition(".")[0]
    default = ctx.estate.catalogs[name].ref or client.default_branch()
    folder = local_path(step.parameters["location"])
    references = [r for r in client.references() if r.name != NESSIE_WORK_BRANCH]
    tables = [
        (reference, content, placed(content.metadata).resolve())
        for reference in references
        for content in client.contents(reference)
        if content.kind == NESSIE_TABLE and content.metadata
    ]
    ids = {content.content for _, content, place in tables if place.is_relative_to(folder)}
    found = tuple(
        LiveHead(reference, table_name(name, content.key, reference.name, default), place)
        for reference, content, place in tables
        if content.content in ids
    )
    _refuse_others(step, found, references)
    return found


def _refuse_others(step: Step, found: Sequence[LiveHead], references: Sequence[Reference]) -> None:
    table, known = str(step.parameters["table"]), set(step.parameters["references"])
    there = {h.title for h in found}
    unknown = sorted(there - known)
    if unknown:
        raise RunError(
            f"{counted(len(unknown), 'reference', 'references')} of the table not known to the plan, first "
            f"{unknown[0]}",
            where=table,
            todo=(
                "plan again, because files of these references may contain the person, and must not be removed while "
                "the references exist"
            ),
        )
    without = sorted({_title(r) for r in references} & known - there)
    if without:
        raise RunError(f"{without[0]} does not contain the table any more", where=table, todo="plan again")


def _title(reference: Reference) -> str:
    return f"{KINDS[reference.type].value} {reference.name}"


def refuse_careless(location: str, live: Sequence[LiveHead]) -> None:
    """Our own commits must not delete what other references name.

    Raises:
        RunError: the table on a reference is set to delete older metadata files with each commit.
    """
    for head in live:
        if deletes_metadata(load_iceberg(local_path(location), head.metadata)):
            raise RunError(
                "each commit deletes metadata files that other references of the catalog may still use",
                where=head.title,
                todo="set write.metadata.delete-after-commit.enabled to false in this table, then plan again",
            )


@contextmanager
def work_branch(client: NessieClient, of: Reference) -> Iterator[None]:
    """A branch at a tag's commit; what was committed to it when the block ends is what the tag is moved to.

    Raises:
        NessieConflict: somebody else moved the tag meanwhile, which then stays where it is.
    """
    drop_work(client)
    client.create_branch(NESSIE_WORK_BRANCH, of)
    try:
        yield
        (work,) = (r for r in client.references() if r.name == NESSIE_WORK_BRANCH)
        if work.hash != of.hash:
            client.assign(of, work)
    finally:
        drop_work(client)


def drop_work(client: NessieClient) -> None:
    """Delete the work branch, which a crash may have left."""
    for reference in client.references():
        if reference.name == NESSIE_WORK_BRANCH:
            client.delete(reference)


def unreached(ctx: ExecutionContext, step: Step) -> list[Listed]:
    """Files in the table's folder that no branch or tag of the catalog reaches; old commits do not count.

    The folder is listed before the references are read, and the references are read again before the answer: one that
    was moved or made in between is asked too.

    Raises:
        RunError: a reference is not known to the plan, a file that one names is missing, or they never stand still.
        EstateError: the server, or a metadata file, cannot be read.
    """
    folder = local_path(step.parameters["location"])
    there = list_table(folder)
    live = heads(ctx, step)
    for _ in range(_LOOKS):
        kept = _reached(folder, live)
        refuse_missing(folder, there, kept)
        found = loose(ctx, there, kept)
        again = heads(ctx, step)
        if [h.metadata for h in again] == [h.metadata for h in live]:
            return found
        live = again
    raise RunError(
        "the table's references keep changing",
        where=str(step.parameters["table"]),
        todo="stop the writers of this table, then run `pii-tracer resume`",
    )


def _reached(folder: Path, live: Sequence[LiveHead]) -> frozenset[str]:
    """What all references together need.

    Raises:
        RunError: none has the table, so that everything in its folder would go.
    """
    if not live:
        raise RunError(
            "no branch or tag contains the table any more",
            where=str(folder),
            todo="remove the table's folder by hand, or plan again",
        )
    return frozenset().union(*(reached(folder, h.metadata) for h in live))
