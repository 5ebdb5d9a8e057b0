"""Another system's numbers in a repository: they stay in objects that are declared to hold rows of their table."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pii_tracer.app.lakefs_objects import look
from pii_tracer.config.estate_file import load_estate
from pii_tracer.model.non_key_columns import no_keys_at
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.value_forms import build_patterns
from tests.kits.other_numbers_kit import ROWS, STAY, as_csv, as_parquet, said
from tests.lakefs.running import Keyring, plan
from tests.lakefs.shop import PREFIX, Shop


def planned(shop: Shop, path: str) -> dict[str, Any]:
    """A plan over the shop, with an object of others' rows, in which a driver has the person's digits."""
    shop.lakefs.put(shop.repo, "free", path, as_csv(*STAY))
    shop.lakefs.commit(shop.repo, "free")
    shop.write()
    (shop.base / "tables" / "users" / "part-0.parquet").write_bytes(as_parquet(*ROWS))
    estate = shop.base / "pii-tracer.yaml"
    estate.write_text(yaml.safe_dump(yaml.safe_load(estate.read_text()) | {"subjects": said("shop.users")}))
    _, made = plan(shop)
    return made


def of_the_repository(shop: Shop) -> tuple[ErasurePlan, Any]:
    made = ErasurePlan.model_validate_json((shop.base / "p.plan.json").read_bytes())
    copy = next(c for c in made.copies if c.location.startswith("lakefs://"))
    patterns = build_patterns(Keyring.key_sets)
    rows = patterns.leaving_out(no_keys_at(made.not_keys, copy.dataset))
    return made, look(load_estate(shop.base / "pii-tracer.yaml"), shop.base, copy, patterns, rows, made.plan_id)


@pytest.mark.parametrize(("path", "left"), [(PREFIX + "drivers.csv", True), ("notes/drivers.csv", False)])
def test_exactly_declared_objects_keep_the_number(shop: Shop, path: str, left: bool) -> None:
    made = planned(shop, path)
    [told] = [item for item in made["not_keys"] if item["table"].startswith("lakefs://")]
    assert (told["copied_from"], told["labels"]) == ("shop.users.driver", ["driver"])
    rewritten = [s["parameters"] for s in made["steps"] if s["action"] == "lakefs_rewrite"]
    assert bool(rewritten) is left
    assert "drivers.csv" not in json.dumps(rewritten)
    gaps = [g for g in made["gaps"] if g["kind"] == "unexpected_copy"]
    assert bool(gaps) is not left
    _, seen = of_the_repository(shop)
    assert any("drivers.csv" in item.file for item in seen.bytes.residue) is not left
    assert bool(seen.bytes.no_keys) is left
