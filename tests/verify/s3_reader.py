"""A verification by rows in a process of its own: a session that runs cannot be given S3's client."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from executors.engine.spark_session import open_session
from pii_tracer.verify.row_checks import Verifier, compare
from tests.s3support import World, estate
from tests.sparksession import small_spark
from tests.verify.s3lake import KEYS, MAIL, MATCH, OTHER, Lake


def main(place: dict[str, str]) -> dict[str, Any]:
    world = World(place["endpoint"])
    lake = Lake.__new__(Lake)
    lake.world, lake.base, lake.key, lake.bucket = world, Path(place["base"]), place["key"], place["bucket"]
    spark = open_session(estate(world.endpoint_url, spark=small_spark()), lake.base, stores={"s3"})
    copy = lake.copy(match=MATCH)
    verifier = Verifier(spark, KEYS)

    def rows() -> dict[str, int | None]:
        return {s.state: s.rows for s in verifier.rows(copy).states}

    before = verifier.baseline(copy)
    found: dict[str, Any] = {"baseline": [[s.state, s.rows_total, s.rows_person] for s in before.states]}
    found["before"] = rows()
    spark.sql(f"DELETE FROM delta.`s3a://{lake.bucket}/{lake.key}` WHERE mail = '{MAIL}'")
    found["deleted"] = rows()
    after = compare(before, verifier.baseline(copy, before))
    found["bystanders"] = [after.lost, after.equal]
    verification = lake.verification(copy, spark=lambda: spark)
    verification.baselines = {copy.id: before}
    verdict = verification.look(copy)
    assert verdict.bytes is not None
    assert verdict.bytes.residue
    found["red"] = sorted(r.where for r in verdict.residue if r.form == "row")
    again(lake, [1], [OTHER])
    found["erased"] = verification.look(copy).erased
    again(lake, [], [])
    verdict = verification.look(copy)
    assert verdict.bystanders is not None
    found["lost"] = [verdict.bystanders.lost, verdict.bystanders.equal, verdict.erased]
    lake.put("left.csv", f"mail\n{MAIL}\n".encode())
    lake.hide("_delta_log/00000000000000000000.json")
    verdict = verification.look(copy)
    found["gone"] = [bool(verdict.residue), *verdict.unverified]
    return found


def again(lake: Lake, numbers: list[int], mails: list[str]) -> None:
    """The table is made anew with some rows; nothing of its past is left."""
    for version in list(lake.versions()):
        lake.client.delete_object(Bucket=lake.bucket, Key=version["Key"], VersionId=version["VersionId"])
    rows = pa.table({"mail": pa.array(mails, pa.string()), "n": pa.array(numbers, pa.int64())})
    write_deltalake(lake.uri, rows, storage_options=lake.options)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
