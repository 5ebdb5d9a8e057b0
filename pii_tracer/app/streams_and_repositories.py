"""Topics and lakeFS repositories, read at planning as far as an estate has them: their clients may not be installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.errors import EstateError
from planners.copies.scan_evidence import LakefsEvidence, TopicEvidence
from planners.locate.subject_survey import Survey

Say = Callable[[str], None]


def read_topics(
    estate: Estate, base: Path, inventory: Inventory, surveys: Sequence[Survey], numbers: OtherNumbers, say: Say
) -> dict[tuple[str, str], TopicEvidence]:
    """Read every declared topic from its beginning, once for each kind of subject."""
    if not inventory.topics:
        return {}
    from pii_tracer.app.topic_records import read_evidence

    found = {}
    for survey_ in surveys:
        for state in inventory.topics:
            say(f"looking for the persons in the topic {state.declared.name}")
            found[survey_.subject.name, state.location] = read_evidence(
                estate, base, inventory, survey_, state, numbers
            )
    return found


def read_repositories(
    estate: Estate, base: Path, inventory: Inventory, surveys: Sequence[Survey], numbers: OtherNumbers, say: Say
) -> dict[tuple[str, str], LakefsEvidence]:
    """Read every object of every lakeFS repository, once for each kind of subject."""
    if not inventory.lakefs:
        return {}
    from pii_tracer.app import lakefs_objects

    found = {}
    for survey_ in surveys:
        for state in inventory.lakefs:
            say(f"looking for the persons in the repository {state.declared.name}")
            try:
                seen = lakefs_objects.read_evidence(estate, base, inventory.tables, survey_, state, numbers)
            except EstateError as error:  # what could not be read to its end is unread, never clean
                seen = LakefsEvidence(objects=0, bytes=0, unread=(error.what,))
            found[survey_.subject.name, state.location] = seen
    return found
