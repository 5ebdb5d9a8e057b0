"""Large objects in S3 of which a part is read for another person: the same is seen, and nothing is clean for that."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from botocore.response import StreamingBody

from pii_tracer.lake.stores.s3 import known_versions
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.hits import Reading
from pii_tracer.scan.scan_ledger import ScanLedger
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.s3support import World, standin, world
from tests.scan.wide_objects import HER, HIM, columns, parquet, small
from tests.verify import s3ledger
from tests.verify.s3ledger import NOW, Look, Place, hooked

__all__ = ["standin", "world"]

WIDE = "wide.parquet"
LOOKS = [Place.plan, Place.verify]


class Shaped(Place):
    """The ledger keeps shapes; a person at a time is searched for."""

    who = HIM

    @property
    def ledger(self) -> ScanLedger:
        return ScanLedger(self.base / "ledger.sqlite", b"k" * 32, lambda: NOW, self.told.append, with_shapes=True)

    def patterns(self) -> Patterns:
        return build_patterns([KeySet(name="email", origin="people.email", weak=False, values=(("s", self.who),))])


@pytest.fixture(params=[True, False], ids=["versions", "no versions"])
def place(world: World, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Shaped:
    small(monkeypatch)
    monkeypatch.setattr(known_versions, "_WITHOUT_RANGES", WeakSet())
    made = Shaped(world, tmp_path, request.param)
    monkeypatch.setattr(s3ledger, "patterns", made.patterns)
    made.put(WIDE, parquet())
    return made


def read_before(place: Shaped, look: Look) -> None:
    """Everything is searched for him; then she is looked for."""
    place.who = HIM
    look(place)
    place.who = HER


def seen(place: Shaped, look: Look) -> tuple[str, Reading]:
    """What is seen of her, which is the same as without anything known."""
    found, reading = look(place)
    sizes = list(place.sizes)
    bare, _ = look(place, kept=False)
    assert found == bare
    place.sizes[:] = sizes
    return found, reading


def ranged(place: Shaped) -> int:
    """Bytes of the wide object, which is larger than all others."""
    return sum(size for size in place.sizes if size > 1_000)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("column", [None, "mail", "first", "second"])
def test_another_person_is_looked_for_in_a_part(place: Shaped, look: Look, column: str | None) -> None:
    whole = parquet(columns(**({column: {5: f"of {HER}"}} if column else {})))
    place.put(WIDE, whole)
    read_before(place, look)
    found, reading = seen(place, look)
    # one of the column chunks that were left out is read as a sample
    versions = 1 + place.versioned
    assert reading.in_parts == versions
    assert reading.left > reading.drawn >= 1
    assert ('"residue":[{' in found or "holders=1" in found) is (column is not None)
    again, reading = look(place)
    assert again == found
    assert reading.by_store == s3ledger.OBJECTS + versions - 1, "the ledger knows it"
    assert (reading.in_parts, reading.oldest) == (versions, NOW), "pages were not read, and it says so"


@pytest.mark.parametrize("look", LOOKS)
def test_little_is_downloaded_for_another_person(place: Shaped, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parquet(columns(2_800))
    place.put("large.parquet", whole)
    monkeypatch.setattr(random.Random, "sample", lambda self, population, k, **more: [])
    place.draw = random.Random(1)
    read_before(place, look)
    assert ranged(place) > len(whole)
    found, _ = look(place)
    assert ranged(place) < len(whole) / 2
    assert '"residue":[{' not in found


@pytest.mark.parametrize("look", LOOKS)
def test_tags_and_metadata_beside_a_part_are_searched(place: Shaped, look: Look) -> None:
    place.put(WIDE, parquet(), Metadata={"of": HER})
    tags = {"TagSet": [{"Key": "by", "Value": HER}]}
    place.client.put_object_tagging(Bucket=place.bucket, Key=f"t/{WIDE}", Tagging=tags)
    read_before(place, look)
    found, reading = seen(place, look)
    assert reading.in_parts
    assert '"residue":[{' in found or "holders=1" in found


@pytest.mark.parametrize("look", LOOKS)
def test_an_object_that_was_written_over_is_read_whole(place: Shaped, look: Look) -> None:
    read_before(place, look)
    place.put(WIDE, parquet(columns(second={5: f"of {HER}"})))
    found, _ = seen(place, look)
    assert '"residue":[{' in found or "holders=1" in found


def test_an_object_that_is_written_over_between_two_ranges_is_no_mixture(place: Shaped) -> None:
    """The listing tells of the first one."""
    read_before(place, Place.verify)
    asked = list[Any]()

    def change(params: Any, **_: Any) -> None:
        if "Range" in params["headers"] and WIDE in params["url_path"]:
            asked.append(params)
            if len(asked) == 2:
                place.put(WIDE, parquet(columns(second={5: f"of {HER}"})))

    with hooked(place.client, "before-call.s3.GetObject", change):
        found, reading = place.verify()
    assert len(asked) >= 2
    if place.versioned:  # the first one is still there
        assert reading.in_parts
        assert '"residue":[{' in place.verify()[0]
    else:
        assert not reading.in_parts
        assert any(WIDE in told for told in json.loads(found)["unverified"])


def whole_answers(params: Any, **_: Any) -> None:
    params["headers"].pop("Range", None)


def test_a_store_that_does_not_know_ranges_sends_the_object_once(place: Shaped) -> None:
    read_before(place, Place.verify)
    with hooked(place.client, "before-call.s3.GetObject", whole_answers):
        found, reading = place.verify()
    assert reading.in_parts == 0
    assert found == place.verify(kept=False)[0]


def cut(parsed: Any, **_: Any) -> None:
    """Fewer bytes than the answer says that it has."""
    if "ContentRange" in parsed and parsed["ContentLength"] > 1:
        data = parsed["Body"].read()[:-1]
        parsed["Body"] = StreamingBody(io.BytesIO(data), len(data))


def other_range(parsed: Any, **_: Any) -> None:
    """As many bytes, of another place in the object."""
    if "ContentRange" in parsed and parsed["ContentLength"] > 1:
        parsed["ContentRange"] = parsed["ContentRange"].replace("bytes ", "bytes 1")


def other_etag(parsed: Any, **_: Any) -> None:
    if "ContentRange" in parsed and parsed["ContentLength"] > 1:
        parsed["ETag"] = '"00000000000000000000000000000001"'


def other_bytes(parsed: Any, **_: Any) -> None:
    """Under the same identity."""
    if "ContentRange" in parsed and parsed["ContentLength"] > 1:
        data = bytes(byte ^ 1 for byte in parsed["Body"].read())
        parsed["Body"] = StreamingBody(io.BytesIO(data), len(data))


@pytest.mark.parametrize("lie", [cut, other_range, other_etag, other_bytes])
@pytest.mark.parametrize("look", LOOKS)
def test_an_answer_that_is_not_this_part_of_this_version_makes_the_object_read_whole(
    place: Shaped, look: Look, lie: Callable[..., None]
) -> None:
    place.put(WIDE, parquet(columns(first={5: f"of {HER}"})))
    read_before(place, look)
    with hooked(place.client, "after-call.s3.GetObject", lie):
        found, reading = look(place)
    assert reading.in_parts == 0
    assert found == look(place, kept=False)[0]


def test_other_bytes_in_a_page_that_was_left_out_are_found_out_by_the_sample(place: Shaped) -> None:
    """The store changed them and says that they are the same: of the chunk that is drawn, this is noticed."""
    read_before(place, Place.verify)
    true = parquet(columns(), compression="snappy")
    found, _ = place.verify()
    assert '"residue":[{' not in found
    (place.base / "ledger.sqlite").unlink()
    read_before(place, Place.verify)
    asked = list[Any]()

    def lie(parsed: Any, **_: Any) -> None:
        """The second time that any bytes are asked for: those of the sample."""
        if parsed["ContentLength"] > 1_000:
            asked.append(parsed)
            data = bytearray(parsed["Body"].read())
            if len(data) == len(true) or len(asked) > 5:
                data[len(data) // 2] ^= 1
            parsed["Body"] = StreamingBody(io.BytesIO(bytes(data)), len(data))

    with hooked(place.client, "after-call.s3.GetObject", lie), pytest.raises(ScanError, match="read again"):
        place.verify()
    assert not (place.base / "ledger.sqlite").exists()
