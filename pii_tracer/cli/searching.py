"""`verify --values`: search places for values, without a plan, a manifest, a key or lineage.

For an auditor who trusts none of them: what was searched, what was found and what nobody could read, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pii_tracer.cli.refusals import unreadable
from pii_tracer.config import Estate
from pii_tracer.enums import StrEnum
from pii_tracer.errors import EstateError, ExitCode, ScanError, UsageError
from pii_tracer.estate.discover import discover
from pii_tracer.estate.paths import EstatePaths
from pii_tracer.estate.s3 import s3_clients
from pii_tracer.estate.s3_versions import region_of
from pii_tracer.locations import S3Location, is_s3, s3_location
from pii_tracer.model import KeySet
from pii_tracer.scan.file_keys import file_keys
from pii_tracer.scan.forms import Patterns, build_patterns
from pii_tracer.scan.searchers import Searchers
from pii_tracer.scan.tree import scan_tree
from pii_tracer.verify.bytes import look_past
from pii_tracer.verify.s3_tables import S3Folder, look_past_s3
from pii_tracer.verify.verdict import ByteVerdict
from planners.keys import WEAK_DIGITS

Place = Path | S3Location


class State(StrEnum):
    """What a search says: clean only where everything was read."""

    CLEAN = "clean"
    FOUND = "found"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Searched:
    """values: how many were looked for. short: how many of them are numbers that may be other people's."""

    values: int
    short: int
    places: tuple[ByteVerdict, ...]

    @property
    def state(self) -> State:
        if any(place.residue for place in self.places):
            return State.FOUND
        return State.UNVERIFIED if any(place.unverified for place in self.places) else State.CLEAN

    @property
    def exit_code(self) -> ExitCode:
        codes = {State.CLEAN: ExitCode.DONE, State.FOUND: ExitCode.RESIDUE, State.UNVERIFIED: ExitCode.PARTIAL}
        return codes[self.state]

    def as_json(self) -> dict[str, Any]:
        """The final object (docs/commands.md)."""
        return {
            "state": self.state.value,
            "values": self.values,
            "short_numbers": self.short,
            "places": [
                {
                    "place": place.root,
                    "files": len(place.files),
                    "bytes": sum(file.size for file in place.files),
                    "residue": len(place.residue),
                }
                for place in self.places
            ],
            "residue": [item.as_json() for place in self.places for item in place.residue],
            "unverified": [item for place in self.places for item in place.unverified],
        }

    def lines(self) -> Iterator[str]:
        """The same for people, the verdict last."""
        for place in self.places:
            yield f"searched: {place.root}: {len(place.files)} files, {sum(f.size for f in place.files)} bytes"
        residue = [item for place in self.places for item in place.residue]
        unverified = [item for place in self.places for item in place.unverified]
        for item in residue[:50]:
            yield f"found: {item.copy_id}: {item.file}: {item.where} ({item.form})"
        for line in unverified[:50]:
            yield f"unverified: {line}"
        if self.short and residue:
            yield f"{self.short} of the values are short numbers: whose they are, only their columns tell"
        numbers = f"found in {len(residue)} places · unverified {len(unverified)}"
        yield f"{self.state.value}: {self.values} values · {numbers}"


def read_values(source: TextIO, name: str) -> tuple[KeySet, ...]:
    """One value a line; spaces around it and empty lines do not count. Nothing is kept of them but in memory.

    Raises:
        UsageError: there are none.
    """
    values = dict.fromkeys(line.strip() for line in source)
    values.pop("", None)
    if not values:
        raise UsageError("there are no values to look for", where=name, todo="give one value a line")
    short = [value for value in values if value.isdigit() and len(value) < WEAK_DIGITS]
    strong = [value for value in values if value not in short]
    pairs = (("value", False, strong), ("short number", True, short))
    return tuple(
        KeySet(name=kind, origin="--values", weak=weak, values=tuple(sorted((kind, value) for value in some)))
        for kind, weak, some in pairs
        if some
    )


def search(
    keys: Sequence[KeySet],
    places: Iterable[Place],
    estate: Estate | None,
    base: Path,
    searchers: Searchers,
    say: Callable[[str], None],
) -> Searched:
    """Search the places for the values of the keys.

    estate: says how S3 is reached and which keys open encrypted Parquet files. base: the folder of its file. say: is
    told each place before it is searched.
    """
    patterns = build_patterns(keys, file_keys(estate.parquet_encryption if estate else None, base))
    found = []
    for place in places:
        say(patterns.mask(str(place)))
        found.append(_look(place, patterns, estate, searchers))
    counts = {key.weak: len(key.values) for key in keys}
    return Searched(values=sum(counts.values()), short=counts.get(True, 0), places=tuple(found))


def place_of(text: str) -> Place:
    """A place as the command line names it: `s3://bucket/prefix`, or a folder or file of this machine.

    Raises:
        UsageError, EstateError: it is neither.
    """
    if is_s3(text):
        return s3_location(text)
    path = Path(text)
    if not path.exists():
        raise UsageError("the place to search does not exist", where=text, todo="name a folder, a file or s3://…")
    return path


def places_of(estate: Estate, base: Path) -> tuple[tuple[Place, ...], tuple[ByteVerdict, ...]]:
    """Where an estate has data: its roots and catalogs, archives, everything in S3 that they lead to; and what is not
    searched so, as places that are unverified.
    """
    paths = EstatePaths(estate, base)
    places: list[Place] = [root for root in paths.roots if root.exists()]
    places += [place.location for place in discover(estate, base).remote]
    # an archive's prefix need not end at a folder: the folder that it lies in has all of it
    places += [S3Location(bucket=a.bucket, key=a.prefix.rpartition("/")[0]) for a in estate.archives]
    missing = [_unsearched(str(root), "the root does not exist") for root in paths.roots if not root.exists()]
    topics = [f"{cluster.bootstrap}/{topic.name}" for cluster in estate.kafka for topic in cluster.topics]
    repositories = [f"{server.endpoint}/{repo.name}" for server in estate.lakefs for repo in server.repositories]
    others = [*topics, *repositories, *(vault.name for vault in estate.vaults), *(b.name for b in estate.backups)]
    missing += [_unsearched(name, "it is searched with a plan only") for name in others]
    return _outermost(places), tuple(missing)


def _outermost(places: Sequence[Place]) -> tuple[Place, ...]:
    """Each place once: what lies in another is searched with it."""
    folders = sorted({place.resolve() for place in places if isinstance(place, Path)})
    kept: list[Place] = [p for p in folders if not any(p != other and p.is_relative_to(other) for other in folders)]
    remote = sorted({place for place in places if isinstance(place, S3Location)}, key=str)
    return (*kept, *(p for p in remote if not any(p != other and other.holds(p) for other in remote)))


def _unsearched(name: str, reason: str) -> ByteVerdict:
    return ByteVerdict(copy_id=name, root=name, files=(), unverified=(f"{name}: not searched: {reason}",))


def _look(place: Place, patterns: Patterns, estate: Estate | None, searchers: Searchers) -> ByteVerdict:
    name = patterns.mask(str(place))
    try:
        if isinstance(place, Path):
            scanned = scan_tree(place, patterns, searchers=searchers).files
            return look_past(name, name, scanned, alone=True)
        if estate is None:
            raise UsageError("S3 is reached as an estate file says", where=name, todo="name it with `--estate`")
        clients = s3_clients(estate)
        with unreadable("the bucket cannot be reached", name, "make it reachable, then search again"):
            region = region_of(clients(None), place.bucket)
        return look_past_s3(name, patterns, S3Folder.of(clients, region, place, ()), searchers, alone=True)
    except (ScanError, EstateError) as error:
        return _unsearched(name, error.what)
