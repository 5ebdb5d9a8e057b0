"""Every lineage source of an estate into the graph."""

from __future__ import annotations

from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.settings import Settings
from pii_tracer.lineage.harvest import Harvested


def harvest(
    settings: Settings, *, on_spark: bool = False, workers: int | None = None, show: Shows = SILENT
) -> Harvested:
    """Read the estate's lineage sources into the graph, which is kept in the state folder; its gaps say what could not
    be resolved. on_spark: parse the texts of query logs on the estate's Spark session. workers: processes that parse
    them otherwise; by default as many as this machine has cores. The graph is the same.

    Raises:
        ConfigError: the estate file cannot be read.
        EstateError: a part of the estate cannot be looked at.
        LineageError: a source cannot be read.
    """
    from pii_tracer.app.planning.plan_creation import graph_file, take_inventory, take_lineage
    from pii_tracer.lineage.graph.graph_file import save
    from pii_tracer.lineage.sources.dataset_descriptions import save_notes
    from pii_tracer.lineage.sources.query_log.parse_workers import cores, parser_in

    estate = settings.estate()
    inventory = take_inventory(estate, settings.base, show.step)
    show.step("harvest")
    if on_spark:
        from executors.engine.spark_session import open_session
        from pii_tracer.lineage.sources.query_log.spark_parsing import parser_on

        spark = open_session(estate, settings.base)
        try:
            found = take_lineage(settings, estate, inventory, show.step, parser_on(spark))
        finally:
            spark.stop()
    else:
        found = take_lineage(settings, estate, inventory, show.step, parser_in(workers or cores()))
    save(found.graph, graph_file(settings))
    save_notes(found.notes, settings.state / "lineage" / "notes.json")
    return found


def summary_text(summary: object) -> str:
    """One line: what was read, what was resolved, what was not."""
    from pii_tracer.common.plurals import counted

    told = vars(summary)
    return (
        f"{counted(told['events'], 'event')}, {counted(told['statements'], 'statement')}: {told['resolved']} resolved,"
        f" {told['partial']} partial, {told['opaque']} opaque; {counted(told['gaps'], 'gap')}"
    )
