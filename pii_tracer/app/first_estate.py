"""A first estate file, a policy and the estate's key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pii_tracer.app.settings import Settings
from pii_tracer.model.errors import UsageError

_ESTATE = "pii-tracer.yaml"
_NAMES = (_ESTATE, "policy.yaml")


@dataclass(frozen=True)
class FirstEstate:
    """What was made. files: whether each was written, or was here already."""

    files: dict[Path, bool]
    key: Path


def write_first_estate(folder: Path, state: Path, estate: str | None = None) -> FirstEstate:
    """Write what is not there yet of a first estate file and a policy into a folder, and of the estate's key.

    estate: the text of the estate file; an example to be filled in where none is given.

    Raises:
        UsageError: as `refuse_written`.
    """
    from pii_tracer.common.atomic_files import write_atomic

    refuse_written(folder, state, drafted=estate is not None)
    files = {folder / name: _template(name) for name in _NAMES}
    settings = Settings(folder / _ESTATE, state)
    key = settings.key_file()
    written = {path: not path.exists() for path in files}
    for path, text in files.items():
        if written[path]:
            write_atomic(path, (estate if estate and path == settings.estate_file else text).encode())
    settings.key(create=True)
    return FirstEstate(written, key)


def refuse_written(folder: Path, state: Path, *, drafted: bool) -> None:
    """Look whether the files of a first estate can be written. Nothing is written.

    drafted: the estate file is made from what is there, so an older one cannot stay.

    Raises:
        UsageError: all is there already, or runs are there whose key is not; or an estate file is, and one is drafted.
    """
    settings = Settings(folder / _ESTATE, state)
    if drafted and settings.estate_file.exists():
        raise UsageError(
            "the estate file is here already; nothing was read or written",
            where=str(settings.estate_file),
            todo="move it away, or name another folder: `pii-tracer init FOLDER --discover …`",
        )
    _refuse_init([*(folder / name for name in _NAMES), settings.key_file()], state)


def _template(name: str) -> str:
    """What is written into a file of that name."""
    return (resources.files("pii_tracer.app") / "templates" / name).read_text("utf-8")


def _refuse_init(files: Sequence[Path], state: Path) -> None:
    """Where nothing is to be made, and where another key would not open what the old one sealed."""
    if all(path.exists() for path in files):
        raise UsageError(
            "all files of the estate already exist; nothing was written", where=str(files[0]), todo="edit it"
        )
    *_, key = files
    if not key.exists() and any((state / "runs").glob("*")):
        raise UsageError(
            "the state folder has runs, but the estate key of their plans is missing. A new key cannot open these "
            "plans",
            where=str(key),
            todo="put the key back, or name its file (PII_TRACER_ESTATE_KEY); for a new estate use another --state",
        )
