"""A drafted estate file beside one by hand: what both plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from tests.app.estate_draft.same_plans import compared, differences
from tests.hdfs.shop import Shop
from tests.hdfssupport import SUPERUSER
from tests.waivers import name_what_was_seen


def draft_of(shop: Shop, *words: str, user: str = SUPERUSER) -> str:
    """The estate file that `init --discover` makes beside the shop's tables and events; how HDFS is reached is given."""
    base = shop.base / "drafted"
    reach = ["--webhdfs", shop.hdfs.webhdfs, "--hdfs-user", user] if shop.hdfs else []
    lineage = ["--lineage", str(shop.base / "events.ndjson"), "--name", "shop"]
    code = run(["init", str(base), "--state", str(base / "state"), *words, *reach, *lineage])
    assert code == ExitCode.DONE
    return (base / "pii-tracer.yaml").read_text()


def planned(shop: Shop, text: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the plan of the drafted estate, for the shop's request."""
    mine = replace(shop, base=shop.base / "drafted")
    (mine.base / "pii-tracer.yaml").write_text(text)
    for name in ("policy.yaml", "request.yaml", "waivers.yaml"):
        (mine.base / name).write_bytes((shop.base / name).read_bytes())
    code, plan = mine.planned()
    # marks of what was seen are made with the estate's key, which is another one here
    return mine.planned() if name_what_was_seen(mine.base / "waivers.yaml", plan["gaps"]) else (code, plan)


def unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Where two plans that were made one after the other say something else: of steps, gaps, copies, and all else."""
    return differences(compared(one, at_one_time=False), compared(other, at_one_time=False))
