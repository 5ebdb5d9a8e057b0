"""Aggregates in Cloud Storage that their owner computes again: each generation is a file."""

from __future__ import annotations

from pii_tracer.verify.verdicts import ComputedAgain
from tests.gcssupport import Gcs
from tests.verify.test_computed_again import counts, estate, looked, noted, old

BUCKET = "shop"


def test_each_generation_is_a_file(gcs: Gcs) -> None:
    gcs.bucket(BUCKET)
    place = {"store": f"gs://{BUCKET}", "endpoint": gcs.endpoint, "anonymous": True, "places": [{"prefix": "counts"}]}
    told, copy = estate(object_stores=[place]), counts(f"gs://{BUCKET}/counts")
    gcs.put(BUCKET, "counts/1.csv", b"people\n3\n")
    before = noted(copy, told)
    assert old(looked(copy, before, told)) == ["counts/1.csv"]
    gcs.put(BUCKET, "counts/1.csv", b"people\n2\n")
    (former,) = old(looked(copy, before, told))
    assert former.startswith("counts/1.csv?version=")
    generation = former.rpartition("=")[2]
    gcs.store(BUCKET).delete_version("counts/1.csv", generation)
    seen = looked(copy, before, told)
    assert (seen.residue, seen.again) == ((), ComputedAgain(before=1, after=1))
