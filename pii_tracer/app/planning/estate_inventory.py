"""What really exists in an estate."""

from __future__ import annotations

from pii_tracer.app.progress import SILENT, Shows
from pii_tracer.app.settings import Settings
from pii_tracer.lake.inventory import Inventory


def inventory(settings: Settings, *, show: Shows = SILENT) -> Inventory:
    """Every table, folder, archive, replica, topic and repository of the estate, and as gaps what could not be read.

    Raises:
        ConfigError: the estate file cannot be read.
        EstateError: a part of the estate cannot be looked at.
    """
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.app.planning.s3_place_search import with_remote
    from pii_tracer.lake.dataset_paths import EstatePaths

    estate, base = settings.estate(), settings.base
    found = take_inventory(estate, base, show.step)
    return with_remote(found, estate, EstatePaths(estate, base), show.step)
