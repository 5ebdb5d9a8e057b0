"""What the program brings along: `make audit` lists every distribution that an installation of it needs, and checks it.

- installed in the version that `constraints.txt` pins, and pip finds no conflict;
- every installed file has the SHA-256 of its wheel's own list (RECORD, https://packaging.python.org/specifications/
  recording-installed-packages/): nothing was changed, taken away or put beside it since it was installed;
- its licence is known, and none that a program under Apache-2.0 could not bring along.

Works without a network. Known vulnerabilities can't be looked up that way: see SECURITY.md.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).parents[1]
WHOLE = "pii-tracer[kafka,iceberg-log,timestamp,connect,postgres,serve,gcp,azure,telemetry]"
COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public|SSPL|BUSL|Commons Clause)", re.IGNORECASE)
_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class Part:
    """One distribution. record: SHA-256 of its list of files."""

    name: str
    version: str
    licence: str
    record: str
    findings: tuple[str, ...]


def needed(whole: str = WHOLE) -> dict[str, Distribution]:
    """Every distribution that this one needs here, itself left out, by canonical name.

    Raises:
        PackageNotFoundError: one is not installed.
    """
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(Requirement(whole).name, extra) for extra in ("", *Requirement(whole).extras)]
    while todo:
        name, extra = todo.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        found[canonicalize_name(name)] = distribution(name)
        for line in found[canonicalize_name(name)].requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                todo += [(wanted.name, more) for more in ("", *wanted.extras)]
    found.pop(canonicalize_name(Requirement(whole).name))
    return dict(sorted(found.items()))


def pins(text: str) -> dict[str, str]:
    """Name to version, of the lines of a constraints file that hold for this Python."""
    found = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate():
            found[canonicalize_name(pin.name)] = str(pin.specifier).removeprefix("==")
    return found


def look(part: Distribution, pinned: Mapping[str, str]) -> Part:
    """One distribution with everything that is wrong with it."""
    name, licence = canonicalize_name(part.name), _licence(part)
    findings = list(_changed(part))
    if pinned.get(name) != part.version:
        findings.append(f"installed is {part.version}, pinned {pinned.get(name, 'nothing')}")
    if not licence:
        findings.append("its licence is not told")
    if COPYLEFT.search(licence):
        findings.append(f"its licence is {licence}")
    record = hashlib.sha256((part.read_text("RECORD") or "").encode()).hexdigest()
    return Part(name, part.version, licence, record, tuple(findings))


def _licence(part: Distribution) -> str:
    told = part.metadata.get("License-Expression") or ""
    named = [c.rpartition(" :: ")[2] for c in part.metadata.get_all("Classifier") or () if c.startswith("License ::")]
    first = (part.metadata.get("License") or "").strip().partition("\n")[0]
    return told or " AND ".join(named) or first


def _changed(part: Distribution) -> Iterator[str]:
    if part.files is None or part.read_text("RECORD") is None:
        yield "it brings no list of its files"
        return
    for file in part.files:
        path = Path(str(part.locate_file(file)))
        if file.hash is None or "__pycache__" in file.parts:
            continue
        if not path.is_file():
            yield f"{file} is gone"
        elif _digest(path, file.hash.mode) != file.hash.value:
            yield f"{file} was changed"


def _digest(path: Path, mode: str) -> str:
    found = hashlib.new(mode)
    with path.open("rb") as stream:
        while data := stream.read(_CHUNK):
            found.update(data)
    return base64.urlsafe_b64encode(found.digest()).decode().rstrip("=")


def conflicts() -> str:
    """What `pip check` says of the whole environment; empty where it says nothing."""
    words = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    return said.stdout + said.stderr if said.returncode else ""


def main() -> int:
    """Print the list; 1 when anything is wrong."""
    wrong = conflicts()
    pinned = pins((REPO / "constraints.txt").read_text(encoding="utf-8"))
    try:
        parts = [look(part, pinned) for part in needed().values()]
    except PackageNotFoundError as error:
        print(f"{error.name} is not installed", file=sys.stderr)
        return 1
    for part in parts:
        print(f"{part.name}=={part.version}  {part.licence}  sha256:{part.record}")
    for part in parts:
        wrong += "".join(f"{part.name}: {finding}\n" for finding in part.findings)
    print(wrong, file=sys.stderr, end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
