"""A tag that is older than it may be stays until somebody expires snapshots; then it is gone, and not before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from executors.context import ExecutionContext
from executors.registry import build
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.table_state import iceberg_state
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_AWAIT_REF
from pii_tracer.lake.inventory import Expiry
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.verify.row_checks import Verifier, compare
from tests.executors.world import BY_UID, NOW, UID, Keyring, Steps, context, frame, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLE = "lake.lapse.t"


def test_a_tag_is_waited_for_until_a_job_has_removed_it(spark: SparkSession, spark_estate: SparkEstate) -> None:
    spark.sql(f"CREATE TABLE {TABLE} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg")
    frame(spark, rows(0, 20, (3, 4))).writeTo(TABLE).append()
    spark.sql(f"ALTER TABLE {TABLE} CREATE TAG q3 RETAIN 1 DAYS")
    frame(spark, rows(20, 20, (31,))).writeTo(TABLE).append()
    folder = spark_estate.base / "warehouse" / "lake" / "lapse" / "t"

    def state() -> Any:
        return iceberg_state(folder, EstatePaths(spark_estate.estate, spark_estate.base)).state

    seen = state()
    (ref,) = seen.refs
    assert ref.lapses is not None
    assert seen.expiry == Expiry(ran=False), "nobody has expired anything: the tag's snapshot and the head are in use"
    copy_ = {"facts": {"lapsing_refs": ["q3"]}}
    verifier = Verifier(spark, [Keyring.sets["uid"]])
    steps = Steps(context(spark_estate), "iceberg", TABLE, folder, ICEBERG, BY_UID)
    before = verifier.baseline(steps.copy.model_copy(update=copy_))

    until, give_up = NOW + timedelta(days=2), NOW + timedelta(days=3)
    wait = {"ref": "q3", "kind": "tag", "at": ref.at, "until": until.isoformat(), "give_up": give_up.isoformat()}

    def at(days: float) -> Any:
        ctx: ExecutionContext = replace(steps.ctx, now=lambda: NOW + timedelta(days=days))
        return build(ctx)["iceberg"]

    step = steps.step(ICEBERG_AWAIT_REF, **wait)
    at(0).check(step, steps.copy)
    assert at(0).run(step, steps.copy).waiting_until == until
    assert at(2.5).run(step, steps.copy).waiting_until == NOW + timedelta(days=2.75)
    assert steps.probe(ICEBERG_AWAIT_REF, **wait) is Progress.PARTIAL
    with pytest.raises(RunError, match="still exists, although"):
        at(3).run(step, steps.copy)
    moved = steps.step(ICEBERG_AWAIT_REF, **{**wait, "at": "1"})
    with pytest.raises(RunError, match="changed after the plan was made"):
        at(0).check(moved, steps.copy)

    # the table's own maintenance, a day later: here the tag's age is made short instead
    jvm: Any = getattr(spark, "_jvm")  # noqa: B009 (Spark Connect has no JVM)
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(getattr(spark, "_jsparkSession"), TABLE)  # noqa: B009
    loaded.manageSnapshots().setMaxRefAgeMs("q3", 1).commit()
    spark.sql("CALL lake.system.expire_snapshots(table => 'lapse.t', older_than => TIMESTAMP '2999-01-01 00:00:00')")
    assert steps.probe(ICEBERG_AWAIT_REF, **wait) is Progress.DONE
    assert at(0).run(step, steps.copy).facts == {"ref": "q3", "lapsed": True}
    assert state().refs == ()
    assert state().expiry == Expiry(ran=True), "the head's parent is gone: somebody expires here"

    now = verifier.baseline(steps.copy.model_copy(update=copy_))
    assert compare(before, now).missing == (), "what lapses by itself is not other people's loss"
    assert spark.table(TABLE).where(f"uid = {UID}").count() == 3
