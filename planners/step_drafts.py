"""Steps before they are dated and priced: what the format rules write and the later rules complete."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pii_tracer.config.backups import Backup
from pii_tracer.lake.inventory import Inventory, ObjectSet, ObjectVersion, RemotePlace, TableState, TopicState
from pii_tracer.lake.stores.glacier.vault_state import VaultState
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.model.actions import Action
from pii_tracer.model.locations import names_place
from pii_tracer.model.plan import Copy, Precondition
from planners.copies.scan_evidence import HdfsRead, StoredRead
from planners.locate.key_location import Carriage
from planners.stores.lakefs.object_retention import LettingGo


@dataclass(frozen=True)
class Draft:
    """A step without dates. `after` names drafts (by id) that must have been verified before it starts.

    retained: the step removes old data and so waits for the retention window when time travel is kept.
    not_before: a date of the system itself (a topic's retention), waited for under every strategy.
    """

    id: str
    copy: str | None
    action: Action
    executor: str
    parameters: dict[str, Any]
    hazards: tuple[str, ...]
    irreversible: bool
    verification: str
    reason: str
    after: tuple[str, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    retained: bool = False
    not_before: datetime | None = None
    files: int = 0
    bytes: int = 0
    rows: int | None = None


@dataclass(frozen=True)
class Lapsing:
    """Current versions of some objects that the bucket's lifecycle removes in time, and when the last one is gone."""

    versions: tuple[ObjectVersion, ...]
    until: datetime

    @property
    def keys(self) -> frozenset[str]:
        """Of the objects."""
        return frozenset(v.key for v in self.versions)


@dataclass(frozen=True)
class StoredDraft:
    """What is done about a place in an object store. rewritten: live versions whose rows a step looks at. old:
    noncurrent ones that are deleted; of_deleted: the object of one of them exists no more.
    """

    place: ObjectPlace
    rewritten: tuple[StoredRead, ...]
    old: tuple[StoredRead, ...]
    of_deleted: bool = False

    @property
    def by_objects(self) -> bool:
        """Whether each object is treated by itself; a table's engine writes its own."""
        return not self.place.table


@dataclass(frozen=True)
class CopyDraft:
    """A copy with what was known when it was recognised, and the drafts of its steps in order.

    place: of a table in S3: the versions in its folder. lapse: when a topic's own retention, or a bucket's lifecycle,
    has removed the person. lapsing: what of an archive it removes in time, where the rest stays longer. letting_go:
    what is done about a lakeFS repository. hdfs: a place in HDFS; reads: its files that steps write again or delete.
    stored: what is done about a place in an object store. no_rebuild: why no recorded statement may write the table
    again. recomputable: a table of aggregates that its owner may compute again, where a waiver has a task for it.
    """

    copy: Copy
    state: TableState | None = None
    place: RemotePlace | None = None
    objects: ObjectSet | None = None
    topic: TopicState | None = None
    lakefs: LakefsState | None = None
    letting_go: LettingGo | None = None
    hdfs: HdfsPlace | None = None
    reads: tuple[HdfsRead, ...] = ()
    stored: StoredDraft | None = None
    vault: VaultState | None = None
    backup: Backup | None = None
    lapse: datetime | None = None
    lapsing: Lapsing | None = None
    carriage: Carriage | None = None
    upstream: str | None = None
    rebuild_sql: str | None = None
    no_rebuild: str = ""
    recomputable: bool = False
    drafts: tuple[Draft, ...] = field(default=())


NO_ROWS: dict[str, Any] = {"match": None, "mentions": ()}
"""Changes of a copy in which no step touches a row."""


def whole_list(reason: str, listed: Iterable[object]) -> str:
    """What a gap shows (`Gap.seen`) whose reason and evidence have only the number, or the first, of what it is about:
    a waiver is for all of these."""
    return "; ".join([reason, *sorted(map(str, listed))])


def slug(name: str) -> str:
    """A name from outside as a safe part of an id: letters, digits, `.`, `_`, `-`.

    A name in another script has its digest behind it, so that no two are one, nor one becomes the other's.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:80]
    return plain if plain and name.isascii() else f"{plain or 'unnamed'}-{short_digest(name)}"


def short_digest(text: str) -> str:
    """What tells two texts apart in ids."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def is_named(name: str, copy: Copy) -> bool:
    """Whether people who write `name` mean this copy."""
    return names_place(name, copy.table, copy.location, copy.dataset.name)


def in_inventory(name: str, inventory: Inventory) -> bool:
    """Whether people who write `name` mean a table, an archive, a topic or a repository that is there."""
    return bool(places_in_inventory(name, inventory))


def places_in_inventory(name: str, inventory: Inventory) -> frozenset[str]:
    """Where the tables, archives, topics and repositories are that people who write `name` mean."""
    places = [(s.table, s.location, s.dataset) for s in inventory.tables]
    places += [(None, o.location, o.dataset) for o in inventory.objects]
    places += [(None, t.location, t.dataset) for t in inventory.topics]
    places += [(None, r.location, r.dataset) for r in inventory.lakefs]
    return frozenset(place for table, place, dataset in places if names_place(name, table, place, dataset.name))


def clone_origins(item: CopyDraft, states: Mapping[str, TableState]) -> Iterable[str]:
    """As `origins_of_clone`, of a copy."""
    return origins_of_clone(item.state, states)


def origins_of_clone(state: TableState | None, states: Mapping[str, TableState]) -> Iterator[str]:
    """Places whose files a shallow clone reads, over any number of clones. states: by location."""
    seen = set[str]()
    while state is not None and state.clone_of is not None and state.clone_of not in seen:
        seen.add(state.clone_of)
        yield state.clone_of
        state = states.get(state.clone_of)


class StepWriter:
    """Collects the drafts of one copy; each comes after the one before it. `base` are parameters of every step."""

    @classmethod
    def of_table(cls, copy: Copy, executor: str) -> StepWriter:
        """For steps on a table or folder, which are told its name and location."""
        return cls(copy, executor, {"table": copy.table, "location": copy.location})

    def __init__(self, copy: Copy, executor: str, base: dict[str, Any]) -> None:
        self._copy = copy
        self._executor = executor
        self._base = base
        self.drafts: list[Draft] = []

    def add(
        self,
        action: Action,
        reason: str,
        *,
        hazards: tuple[str, ...] = (),
        verification: str,
        irreversible: bool = True,
        retained: bool = False,
        not_before: datetime | None = None,
        **parameters: Any,
    ) -> None:
        """Append a step."""
        number = len(self.drafts) + 1
        self.drafts.append(
            Draft(
                id=f"{self._copy.id}/{number:02d}-{action.value.replace('_', '-')}",
                copy=self._copy.id,
                action=action,
                executor=self._executor,
                parameters=self._base | parameters,
                hazards=hazards,
                irreversible=irreversible,
                verification=verification,
                reason=reason,
                after=(self.drafts[-1].id,) if self.drafts else (),
                retained=retained,
                not_before=not_before,
            )
        )


def verification(item: CopyDraft, drafts: Sequence[Draft]) -> Draft:
    """The last step of a copy: the look at it that counts."""
    return Draft(
        id=f"{item.copy.id}/99-verify",
        copy=item.copy.id,
        action=Action.VERIFY_COPY,
        executor="verify",
        parameters={"table": item.copy.table, "location": item.copy.location},
        hazards=("F3", "F4"),
        irreversible=False,
        verification="rows and bytes: every snapshot read, every file decoded by its format",
        reason="no result of a step is trusted without this check",
        after=(drafts[-1].id,) if drafts else (),
    )
