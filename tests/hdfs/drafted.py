"""A drafted estate file beside one by hand: what both plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
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


def told(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan does, and what it does not know."""
    steps = plan["steps"]
    return {
        "gaps": sorted((gap["id"], gap["reason"]) for gap in plan["gaps"]),
        "copies": sorted(
            (c["id"], str(c["table"]), c["location"], c["strategy"], str(c["found"])) for c in plan["copies"]
        ),
        "examined": sorted(str(item["dataset"]) for item in plan["examined"]),
        "steps": sorted((s["id"], s["action"], str(s["copy"]), str(sorted(s["depends_on"]))) for s in steps),
    }
