"""The persons in what a table, a catalog or a recorded statement says: no step writes that, so that somebody has to.

A waiver is for the texts that its author saw (`Gap.seen` has their digests, of which a plan keeps a keyed one alone).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pii_tracer.model.datasets import Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import NUMBERED, Copy, ErasurePlan, Gap
from pii_tracer.scan.hits import stands_in
from planners.formats.registry import planner_of
from planners.gaps.copy_gap import gap_of
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, short_digest, slug, whole_list

_STATEMENTS = "ALTER TABLE … UNSET TBLPROPERTIES, DROP CONSTRAINT, ALTER COLUMN … COMMENT"
_OF_CATALOG = f"gap-{GapKind.CATALOG_UNREADABLE}-texts-"
_ASKED = ": ask its owner to remove the value ("
_SHOWN = 8
"""Tables that a gap about many of them names."""


def table_texts(items: Iterable[CopyDraft], world: World) -> tuple[Gap, ...]:
    """A gap for each copy whose description holds the persons."""
    gaps = []
    for item in items:
        texts = world.described.get(item.state.location, ()) if item.state else ()
        found = [text for text in texts if text.certain or any(of_persons(item.copy, *one) for one in text.digits)]
        told = [text.place for text in found]
        if told and item.copy.origin is None and item.copy.strategy is not Strategy.EXEMPT:
            reason = f"the table names the person in its {', '.join(told)}, which the erasure of rows does not change"
            shown = (digest for text in found for digest in text.texts)
            gaps.append(gap_of(item, GapKind.TABLE_TEXT, reason, _todo(item, told), shown))
    return (*gaps, *_of_catalogs(world), *_of_jobs(world))


def of_persons(copy: Copy, key_set: str, column: str | None) -> bool:
    """Whether a short number in a column counts as the persons' where the copy is verified
    (`pii_tracer.verify.byte_search.judge`)."""
    means = copy.facts.get(NUMBERED, {}).get(column)
    return not stands_in(column, copy.other_keys) and (means is None or key_set in means)


def _of_jobs(world: World) -> Iterator[Gap]:
    """Statements that lineage was read from, which stay in its inputs, and names, which stay in the graph, too."""
    for one in world.jobs:
        places = ", ".join(one.places[:3]) + (f" and {len(one.places) - 3} more" if len(one.places) > 3 else "")
        by_job = f"a recorded statement of the job {one.job} names the person, and no step rewrites the statement"
        by_name = "a name in the lineage contains a value of the person, and the graph in the state folder retains it"
        way_out = "remove the value from the SQL file, or remove the events. Then harvest, and plan again"
        yield Gap(
            id=f"gap-{GapKind.LINEAGE_TEXT}-{slug(one.job or 'names')}",
            dataset=None,
            kind=GapKind.LINEAGE_TEXT,
            seen=whole_list(one.job, (*one.places, *one.texts)),
            reason=by_job if one.job else by_name,
            evidence=f"{places}: {way_out}",
        )


def _of_catalogs(world: World) -> Iterator[Gap]:
    """What stands in a catalog's own database, of tables, views and namespaces that may be no copies at all."""
    for one in world.catalogs:
        name = slug(one.title)
        if one.places:
            reason = (
                f"the catalog names the person in {', '.join(one.places)}, which the erasure of rows does not change"
            )
            yield Gap(
                id=f"gap-{GapKind.TABLE_TEXT}-{name}",
                dataset=None,
                kind=GapKind.TABLE_TEXT,
                reason=reason,
                seen=whole_list(reason, one.texts),
                evidence=f"{one.title}{_ASKED}{one.remedy}), then plan again",
            )
    yield from _unread_texts(world)


def _unread_texts(world: World) -> Iterator[Gap]:
    """One gap for each catalog and cause: a call that its server lacks fails for every table."""
    titles: dict[tuple[str, str], list[str]] = {}
    for one in world.catalogs:
        for cause in one.unread:
            titles.setdefault((one.title.partition(".")[0], cause), []).append(one.title)
    for (catalog, cause), named in titles.items():
        reason = f"texts in the catalog (such as comments and properties) were not read: {cause}"
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        yield Gap(
            id=f"{_OF_CATALOG}{slug(catalog)}-{short_digest(cause)}",
            dataset=None,
            kind=GapKind.CATALOG_UNREADABLE,
            seen=whole_list(reason, named),
            reason=reason,
            evidence=", ".join(named[:_SHOWN]) + more,
        )


def waived_text(plan: ErasurePlan, title: str) -> Gap | None:
    """The waived gap about what a catalog keeps of one table or namespace; None where a task of its owner is open."""
    waived = (gap for gap in plan.gaps if gap.waiver and not gap.task and is_of_text(gap, title))
    return next(waived, None)


def waives_unread(plan: ErasurePlan, title: str, cause: str) -> bool:
    """Whether somebody waived that texts of a catalog cannot be read for this cause."""
    return bool(_waived(plan, f"{_OF_CATALOG}{slug(title.partition('.')[0])}-{short_digest(cause)}"))


def _waived(plan: ErasurePlan, gap_id: str) -> list[Gap]:
    return [gap for gap in plan.gaps if gap.id == gap_id and gap.dataset is None and gap.waiver]


def catalog_texts(gap: Gap, world: World) -> frozenset[str]:
    """SHA-256 of the texts in a catalog that hold the persons, where a gap is about them."""
    return frozenset().union(*(one.texts for one in world.catalogs if is_of_text(gap, one.title)))


def is_of_text(gap: Gap, title: str) -> bool:
    """Whether a gap is about what a catalog keeps of one table or namespace. Its id does not tell: names may be long,
    and begin alike (`planners.unique_ids`). Nor do its first words: names may have any sign in them."""
    if gap.kind != GapKind.TABLE_TEXT or gap.dataset is not None:
        return False
    told, asked, _ = gap.evidence.rpartition(_ASKED)
    return told == title if asked else gap.evidence.startswith(f"{title}: ")  # earlier versions ask in other words


def is_of_catalog(gap: Gap) -> bool:
    """Whether it is one gap for many tables of a catalog, whose evidence names some of them: `CATALOG.TABLE, …`."""
    return gap.id.startswith(_OF_CATALOG)


def _todo(item: CopyDraft, told: Iterable[str]) -> str:
    """What to type for each place that holds a value."""
    known = planner_of(item.copy.format).text_remedies(item.copy.format)
    ways = [f"{place}: {known[place]}" for place in told if place in known]
    first = [] if ways and all(place in known for place in told) else [_STATEMENTS]
    return (
        f"ask its owner to remove the value ({'; '.join((*first, *ways))}), then plan again: the plan's steps remove "
        "old metadata with the value"
    )
