"""Records the sample's OpenLineage events: its jobs really run, with OpenLineage's Spark listener listening.

`python -m sample_lineage.record` writes `events/NN_name.ndjson` anew. Events stay as the listener made them, apart from
what belongs to the recording machine: the root folder becomes `/lakehouse`, and facets about the environment go.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.engine.spark_session import OPENLINEAGE, open_session
from executors.engine.version_profiles import SPARK_3_5
from sample_lineage.build import HERE, RECORDED_ROOT, build_tables, run_job, sample_estate
from sample_lineage.people import populate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMESPACE = "blr-lakehouse"
APPLICATION = "payments_jobs"
# about the machine, or large without saying more about lineage
DROPPED_FACETS = (
    "spark_properties",
    "environment-properties",
    "spark_applicationDetails",
    "spark.logicalPlan",
    "spark_unknown",
    "spark_jobDetails",
    "processing_engine",
)


def listener_conf(log: Path) -> dict[str, str]:
    """Session settings that make the listener write its events to `log`."""
    return {
        "spark.jars.packages": ",".join((*SPARK_3_5.packages, OPENLINEAGE)),
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.namespace": NAMESPACE,
        "spark.openlineage.appName": APPLICATION,
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(log),
        "spark.openlineage.columnLineage.datasetLineageEnabled": "true",
        "spark.openlineage.facets.spark_unknown.disabled": "true",
        "spark.openlineage.facets.spark.logicalPlan.disabled": "true",
        "spark.openlineage.facets.spark_properties.disabled": "true",
    }


def clean_event(event: dict[str, Any], base: Path) -> dict[str, Any]:
    """An event without the machine it was recorded on."""
    text = json.dumps(event, ensure_ascii=False, sort_keys=True)
    cleaned: dict[str, Any] = json.loads(text.replace(str(base), RECORDED_ROOT))
    for holder in ("run", "job"):
        facets = cleaned.get(holder, {}).get("facets", {})
        for name in DROPPED_FACETS:
            facets.pop(name, None)
    return cleaned


def machine_words(base: Path) -> tuple[str, ...]:
    """What must not stand in any event: this machine's folders, names and user."""
    return (str(base), str(base.parent), str(Path.home()), str(HERE.parent), socket.gethostname() + ".")


def record(folder: Path) -> dict[str, int]:
    """Run the jobs in a temporary lakehouse and write their events to `folder`, one file a job.

    Returns:
        Events by job.

    Raises:
        ValueError: an event still names the recording machine; nothing is written.
    """
    with tempfile.TemporaryDirectory(prefix="recording-") as scratch:
        base = Path(scratch).resolve() / "lakehouse"
        log = Path(scratch) / "events.log"
        spark = open_session(sample_estate(), base, listener_conf(log))
        try:
            lines = _run(spark, base, log)
        finally:
            spark.stop()
        files = {}
        for job, texts in lines.items():
            events = [clean_event(json.loads(text), base) for text in texts]
            files[job] = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
        for word in machine_words(base):
            named = [job for job, text in files.items() if word in text]
            if named:
                raise ValueError(f"the recording machine is still named in the events of {', '.join(named)}")
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.ndjson"):
        stale.unlink()
    for job, text in files.items():
        (folder / f"{job}.ndjson").write_text(text, encoding="utf-8")
    return {job: text.count("\n") for job, text in files.items()}


def _run(spark: SparkSession, base: Path, log: Path) -> dict[str, list[str]]:
    """Run everything; the listener's lines by job, those of its first run: a clone is made only there."""
    lines: dict[str, list[str]] = {}

    def settled() -> int:
        # the listener works behind a queue
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0

    def run(job: Path) -> None:
        before = settled()
        run_job(spark, job, base)
        settled()
        lines.setdefault(job.stem, log.read_text(encoding="utf-8").splitlines()[before:])

    people = populate(datetime.now(timezone.utc))
    build_tables(base, spark, people, lambda line: print(line, file=sys.stderr, flush=True), run)
    return lines


def main() -> None:
    """Record the events into the package's folder."""
    for job, count in record(HERE / "events").items():
        print(f"{job}: {count} events", file=sys.stderr)


if __name__ == "__main__":
    main()
