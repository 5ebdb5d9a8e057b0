"""Delete what a store keeps of a table's past: every version below its folder that is not live.

What Spark, or a step of ours, removes from a store with versions stays there as a noncurrent one. Nothing is listed in
the plan: which versions there will be is known only when the steps before this one are done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from executors.stores.masked_object_names import shown_names
from executors.stores.object_places.step_base import ObjectPart, PlaceParameters
from executors.sweep.table_folders import files_below, refusals, refuse_tables_inside
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.base import Changed, StoreError
from pii_tracer.lake.stores.object_places.object_path import ObjectPath
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState
from pii_tracer.model.timestamps import instant
from pii_tracer.run.executor_protocol import Check, Outcome, PartlyDone, Progress

_BEGAN = "cleared_before"


@dataclass(frozen=True)
class ClearingVersions(ObjectPart):
    """One OBJECT_CLEAR_VERSIONS step."""

    parameters: PlaceParameters

    def check(self) -> None:
        """A table with another one inside is not planned for; one that has come since must not lose its past.

        Raises:
            RunError: there is one, or the folder cannot be listed.
        """
        folder = ObjectPath.at(self.ctx.estate, self.parameters.place)
        with refusals(folder):
            refuse_tables_inside(folder, files_below(folder), self.copy.format if self.copy else None)

    def run(self) -> Outcome:
        """Delete what is old now.

        Raises:
            PartlyDone: the store refuses some.
        """
        began, shown = self.ctx.now(), shown_names(self.ctx, self.copy)
        store = self.store(self.parameters.place)
        deleted, refused = [], list[str]()
        for version in self._old():
            try:
                store.delete_exactly(version)
            except Changed:
                refused.append("changed meanwhile")
                continue
            except StoreError as error:
                refused.append(error.code)
                continue
            deleted.append({"key": shown(version.key), "version_id": version.version_id, "bytes": version.size})
        facts = {"deleted": deleted, _BEGAN: began.isoformat()}
        if refused:
            raise PartlyDone(
                f"{counted(len(refused), 'old version was', 'old versions were')} not"
                f" deleted: {', '.join(sorted(set(refused)))}",
                facts,
                where=self.parameters.location,
                todo=(
                    "grant the right to delete versions, or ask the owner to release the hold; then run `pii-tracer "
                    "resume`"
                ),
            )
        return Outcome(facts)

    def verify(self) -> Check:
        """List again: nothing is old that was so when the step began."""
        left = len(list(self._old(self._began())))
        return Check.none_left(left, "old version is", "old versions are", "left", {"left": left})

    def probe(self) -> Progress:
        """Whether anything is left. How much there was nobody knows."""
        return Progress.DONE if next(self._old(self._began()), None) is None else Progress.PARTIAL

    def _began(self) -> datetime | None:
        """When the last run of the step began; what became old since, writers made who are at work."""
        told = [facts[_BEGAN] for facts in self.ctx.told(self.step_id) if _BEGAN in facts]
        return datetime.fromisoformat(told[-1]) if told else None

    def _old(self, since: datetime | None = None) -> Iterator[StoredVersion]:
        place = self.parameters.place
        for version in sorted(self.store(place).all_versions(place.prefix), key=lambda v: (v.key, v.version_id)):
            if version.state is not VersionState.NONCURRENT:
                continue
            if since is None or version.old_since is None or instant(version.old_since) < since:
                yield version
