"""What the estate file may say of lakeFS."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.config.estate_file import Estate
from tests.lakefs.shop import estate_data


def data(**changes: Any) -> dict[str, Any]:
    """A good estate file, with some members of its one server replaced."""
    good = estate_data("https://lakefs.example.com", "store")
    good["lakefs"][0] |= changes
    return good


def repositories(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    base = estate_data("https://lakefs.example.com", "store")["lakefs"][0]["repositories"][0]
    return [base | change for change in changes]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"endpoint": "https://user:secret@lakefs.example.com"}, "endpoint"),
        ({"endpoint": "file:///etc"}, "endpoint"),
        ({"secret_access_key": "x"}, "secret_access_key"),
        ({"secret_key_env": "not a name"}, "secret_key_env"),
        ({"repositories": []}, "repositories"),
        ({"repositories": repositories({}, {"of": "b.c"})}, "declared twice"),
        ({"repositories": repositories({"format": "orc"})}, "parquet or csv"),
        ({"repositories": repositories({"prefixes": []})}, "whole repository"),
        ({"repositories": repositories({"name": "Shop"})}, "name"),
        ({"repositories": repositories({"collect_days": -1})}, "collect_days"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Estate.model_validate(data(**changes))


def test_two_servers_are_two() -> None:
    good = data()
    with pytest.raises(ValidationError, match="one name"):
        Estate.model_validate(good | {"lakefs": [*good["lakefs"], *good["lakefs"]]})
    other = good["lakefs"][0] | {"name": "other", "endpoint": "https://lakefs.example.com/"}
    with pytest.raises(ValidationError, match="one endpoint"):
        Estate.model_validate(good | {"lakefs": [*good["lakefs"], other]})
    assert Estate.model_validate(good).lakefs[0].access_key_env == "LAKECTL_CREDENTIALS_ACCESS_KEY_ID"
