"""What holds for every test: a busy machine makes no property fail, and no file finds another's tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.nightly_tests import NIGHTLY
from tests.slow_tests import is_slow

# the same few inputs each time in continuous integration, which Hypothesis' own profile for it sees to; elsewhere others,
# and more of them for `make test-fast`
settings.register_profile("few", settings.get_profile("ci"), max_examples=40)
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
settings.register_profile("many", settings.get_profile("patient"), max_examples=100)
settings.load_profile("few" if os.environ.get("CI") else "patient")

# a failed assertion of a kit shows its values, as one of a test does
pytest.register_assert_rewrite("tests.kits")

_NIGHTLY = tuple(NIGHTLY)
BEGUN_FIRST = (
    "tests/hdfs/test_failover.py",
    "tests/sample_lineage/",
    "tests/verify/test_lapsed.py",
    "tests/verify/test_lying_stores.py",
    "tests/verify/test_real_tables.py",
)
"""Files that take long and come late by their names: one worker would run one of them when the others have ended."""

if TYPE_CHECKING:
    from tests.scheduling import ByFile


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Workers take whole files."""
    from tests.scheduling import ByFile

    if config.getvalue("dist") != "loadfile":
        return None
    scheduler = ByFile(config, log)
    config.pluginmanager.register(scheduler)
    return scheduler


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of both lists, before any is chosen by its marks; long files come first."""
    for item in items:
        if item.nodeid.startswith(_NIGHTLY):
            item.add_marker(pytest.mark.nightly)
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not item.nodeid.startswith(BEGUN_FIRST))


@pytest.fixture(scope="module", autouse=True)
def tables_of_its_own() -> Iterator[None]:
    """What the tests of a file made known to Spark ends with the file, and so does the process of its commands."""
    yield
    if "tests.commands_apart" in sys.modules:
        from tests.commands_apart import end_it

        end_it()
    if "pyspark" in sys.modules:
        from tests.sparksession import forget_tables

        forget_tables()
