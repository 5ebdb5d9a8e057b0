"""The kit for what formats keep beside rows: a person's value planted in one place at a time, and what is said of it.

Verification searches the planted table, planning plans for it. What verification finds has to be in a gap of that table
or has to go by a step (`Outcome.silent`), which a run on Spark then shows. All plants of a format are one estate.
"""

from __future__ import annotations

import copy as copies
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from deltalake import write_deltalake

from pii_tracer.cli.main import run
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.byte_search import verify_bytes
from tests.cli.small import declared, request

KEY, MAIL = "P-55102", "rao@x.example"
HERS = pa.table({"cust": [KEY, "P-7"], "note": ["nothing", "n"]})
OTHERS = pa.table({"cust": ["P-3", "P-9"], "note": ["a", "z"]})
"""Rows of the tables: her e-mail, which is planted, is in none of them."""
PEOPLE = pa.table({"cust": [KEY, "P-7", "P-3"], "email": [MAIL, "b@x.example", "c@x.example"]})
_SUBJECT = """\
  - name: customer
    source: s.people
    key: cust
    identifiers: [{column: email, category: email}]
"""
Plant = Callable[[Path], None]
"""Puts the value into a table's folder."""
Step = str | int


@dataclass(frozen=True)
class Outcome:
    """What is said of one planted table.

    found: files in which verification finds the value. gaps: kinds, with texts. actions: of the table's steps. refused:
    no plan is made, since it would show the value.
    """

    found: frozenset[str]
    gaps: tuple[tuple[str, str], ...] = ()
    actions: frozenset[str] = frozenset()
    refused: bool = False

    @property
    def silent(self) -> bool:
        """Whether planning trusts its steps with it."""
        return bool(self.found) and not self.gaps and not self.refused


Build = Callable[[Path, str], Path]
"""Makes the table of a name below a base folder, and gives its own folder."""


@dataclass(frozen=True)
class Planted:
    """A format's plants, and what is known of them: patterns of their names.

    taken: the action of the step that takes the value away. refused: no plan is made, since a name in it would show the
    value. unseen: the search does not see it, and why. quick: names that `make test` plants; continuous integration
    plants all.
    """

    kind: str
    build: Build
    plants: Callable[[Path], Mapping[str, Plant]]
    taken: Mapping[str, str]
    refused: tuple[str, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)
    quick: tuple[str, ...] = ()
    catalog: str = ""

    def every(self, base: Path) -> Mapping[str, Plant]:
        """All plants. base: an empty folder, for a table that is looked at."""
        (base / "lake").mkdir(parents=True)
        return self.plants(self.build(base, "template"))

    def action(self, name: str) -> str | None:
        """What takes the value of a plant away, as this says."""
        return next((action for pattern, action in self.taken.items() if re.fullmatch(pattern, name)), None)

    def faults(self, base: Path, plants: Mapping[str, Plant]) -> str:
        """Plant each in a table of its own, and compare what is said with what is known: a line for each fault."""
        lone = {name for name in plants if any(re.fullmatch(pattern, name) for pattern in self.refused)}
        found = self._outcomes(base / "all", {name: put for name, put in plants.items() if name not in lone})
        for number, name in enumerate(sorted(lone)):
            found |= self._outcomes(base / f"alone{number}", {name: plants[name]})
        return "\n".join(f"{name}: {fault}" for name, one in found.items() if (fault := self._fault(name, one)))

    def _outcomes(self, base: Path, plants: Mapping[str, Plant]) -> dict[str, Outcome]:
        if not plants:
            return {}
        made = PlantedEstate(base, self.kind, self.build, plants, self.catalog)
        return made.outcomes() or {n: Outcome(made.found(f), refused=True) for n, f in made.folders.items()}

    def _fault(self, name: str, one: Outcome) -> str | None:
        action = self.action(name)
        if not one.found:
            known = any(re.fullmatch(pattern, name) for pattern in self.unseen)
            return None if known else "verification does not see it"
        if one.refused:
            return None if any(re.fullmatch(pattern, name) for pattern in self.refused) else "no plan is made"
        if one.gaps:
            return (
                None
                if action is None
                else f"a gap, although {action} takes it away: {', '.join(kind for kind, _ in one.gaps)}"
            )
        if action is None:
            return "verification sees it, and planning says nothing"
        return None if action in one.actions else f"the plan has no step {action}"


@dataclass(frozen=True)
class PlantedEstate:
    """Tables of one format, each by the name of its plant."""

    base: Path
    kind: str
    build: Build
    plants: Mapping[str, Plant]
    catalog: str = ""
    folders: dict[str, Path] = field(default_factory=dict)

    def outcomes(self) -> dict[str, Outcome] | None:
        """What is said of each; None where no plan is made."""
        self.write()
        plan = self.planned()
        if plan is None:
            return None
        found = {}
        for name, folder in self.folders.items():
            about = [g for g in plan.gaps if _is_about(g.dataset.name if g.dataset else "", g.evidence, folder)]
            ids = {c.id for c in plan.copies if c.location == str(folder)}
            found[name] = Outcome(
                self.found(folder),
                tuple((g.kind, f"{g.reason} {g.evidence}") for g in about),
                frozenset(step.action for step in plan.steps if step.copy_ in ids),
            )
        return found

    def found(self, folder: Path) -> frozenset[str]:
        """Files in which verification finds the value."""
        patterns = build_patterns([KeySet(name="email", origin="email", values=(("R", MAIL),), weak=False)])
        copy = Copy.model_construct(
            id="c", location=str(folder), other_keys=(), mask=None, match=None, mentions=(), facts={}
        )
        return frozenset(residue.file for residue in verify_bytes(copy, patterns, folder).residue)

    def write(self) -> None:
        """The estate file, the source, and every table with its plant."""
        (self.base / "lake").mkdir(parents=True)
        names = [_called(n) for n in range(len(self.plants))]
        tables = {"s.people": "delta"} | ({} if self.catalog else {f"s.{name}": self.kind for name in names})
        text = declared("lake", tables).replace("roots:", f"{self.catalog}roots:") + _SUBJECT
        (self.base / "pii-tracer.yaml").write_text(text)
        front = "ice.s" if self.catalog else "s"
        jobs = (f"INSERT INTO {front}.{name} (cust, note) SELECT cust, city FROM s.people;\n" for name in names)
        (self.base / "jobs.sql").write_text("".join(jobs))
        (self.base / "request.yaml").write_text(request("customer", KEY))
        (self.base / "policy.yaml").write_text("version: 1\n")
        city = pa.array(["Pune", "Goa", "Goa"])
        write_deltalake(self.base / "lake" / "people", PEOPLE.append_column("city", city))
        for name, (plant, put) in zip(names, self.plants.items(), strict=True):
            folder = self.build(self.base, name)
            put(folder)
            self.folders[plant] = folder

    def planned(self) -> ErasurePlan | None:
        """The plan, which is also in `r.plan.json`; None where it is refused."""
        out = self.base / "r.plan.json"
        given = ["--format", "json", "--out", str(out), "--estate", str(self.base / "pii-tracer.yaml")]
        code = run(["plan", str(self.base / "request.yaml"), *given, "--state", str(self.base / "state")])
        if code not in (0, 3):
            return None
        text = out.read_text()
        assert MAIL not in text
        return ErasurePlan.model_validate(json.loads(text))


def _called(number: int) -> str:
    return f"t{number:03}"


def _is_about(dataset: str, evidence: str, folder: Path) -> bool:
    return dataset.endswith(f"/{folder.name}") or f"/{folder.name}" in evidence


# --- a value in each leaf of a document ---


def leaves(document: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """The place of every text in a document, also of those in texts that are JSON; and of one more member of each
    object."""
    if isinstance(document, str):
        inner = _parsed(document)
        if inner is None:
            yield path
        else:
            yield from leaves(inner, path)
    elif isinstance(document, dict):
        yield (*path, "unheard_of")
        for key, value in document.items():
            yield from leaves(value, (*path, key))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from leaves(value, (*path, number))


def with_value(document: Any, path: tuple[Step, ...], value: str = MAIL) -> Any:
    """The document with the value in one place."""
    if isinstance(document, str):
        inner = _parsed(document)
        return value if inner is None else json.dumps(with_value(inner, path, value))
    if not path:
        return value
    made = copies.copy(document)
    step = path[0]
    made[step] = with_value(document[step], path[1:], value) if not isinstance(made, dict) or step in made else value
    return made


def _parsed(text: str) -> Any:
    try:
        inner = json.loads(text)
    except ValueError:
        return None
    return inner if isinstance(inner, (dict, list)) else None


def avro_rewritten(file: Path, change: Callable[[list[Any]], None], **metadata: str) -> None:
    """Write an Avro file again with other records or more metadata in its header."""
    with file.open("rb") as stream:
        reader = fastavro.reader(stream)
        rows = list(reader)
        told = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema = json.loads(reader.metadata["avro.schema"])
    change(rows)
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, codec="deflate", metadata=told | metadata)
    overwritten(file, sink.getvalue())


def overwritten(file: Path, data: bytes) -> None:
    """Write a file again; Hadoop's checksum of what it was goes."""
    file.write_bytes(data)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def beside(name: str, folder: Path) -> None:
    """A file of text in the table's folder, or the value as one more line of the one that is there."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{MAIL}\n")
