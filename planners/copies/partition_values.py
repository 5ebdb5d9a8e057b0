"""Keys of persons that the catalog alone has: the value of a partition, which no file of the partition contains.

Reading the files shows then neither whose rows they are, nor that they are nobody's.
"""

from __future__ import annotations

from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.subject_survey import Survey, World
from planners.step_drafts import slug


def values_in_catalog(found: Survey, world: World, location: str, dataset: DatasetId) -> list[Gap]:
    """A gap where a table's partitions lie at a place, in it or around it, and the catalog alone has their key."""
    told = {}
    for table, untold in world.partitions.untold(location):
        carriage = found.carriages.get(table.dataset) if table.dataset else None
        if carriage is None or carriage.carries is Carries.NONE:
            continue
        if columns := untold & {name.lower() for name in carriage.key_names}:
            told[table.title] = ", ".join(sorted(columns))
    if not told:
        return []
    names = "; ".join(f"{columns} of {title}" for title, columns in sorted(told.items()))
    return [
        Gap(
            id=f"gap-{GapKind.CANNOT_BE_PROVED}-{slug(dataset.name)}-partitions",
            dataset=dataset,
            kind=GapKind.CANNOT_BE_PROVED,
            reason=f"only the catalog says whose the rows of partitions are ({names}), and files of such partitions lie"
            " there: nobody can prove by the files whose rows they are",
            evidence="move each partition into a folder of its table whose name has the values (`column=value`), or"
            " drop the person's partitions and delete their files, then plan again",
        )
    ]
