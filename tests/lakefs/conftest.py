from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lakefs.shop import KEY_PAIR, NOW, Shop, build
from tests.lakefs.standin import Lakefs
from tests.lakefs.standin_api import serving
from tests.sparksession import spark, spark_estate  # noqa: F401


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A fresh shop; in the end every call was one that lakeFS's API describes."""
    for name, value in KEY_PAIR.items():
        monkeypatch.setenv(name, value)
    root, base = tmp_path / "store", tmp_path / "estate"
    root.mkdir()
    base.mkdir()
    with serving(root, NOW) as lakefs:
        yield build(lakefs, base, root)
        assert lakefs.violations == []


@pytest.fixture
def lakefs_alone(tmp_path: Path) -> Iterator[Lakefs]:
    """A server whose violations a test looks at itself."""
    with serving(tmp_path, NOW) as lakefs:
        yield lakefs
