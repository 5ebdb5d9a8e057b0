"""Kinds of files that are told by their bytes. Each decoder declares its own; nobody else names them.

A module of this package declares one as `KIND`; another package registers one in the entry-point group
`pii_tracer.file_kinds`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pii_tracer.common import plugins
from pii_tracer.scan import decode as own

if TYPE_CHECKING:
    from pii_tracer.scan.decode.table_metadata import Role
    from pii_tracer.scan.hit_collector import Collector

GROUP = "pii_tracer.file_kinds"


@dataclass(frozen=True)
class Part:
    """A part of a container. pieces: its bytes, in order.

    own: the container's own, such as headers, which are searched as they stand. Others are files by themselves, called
    `name` in it: members, and what lies between or behind them.
    """

    name: str
    pieces: Iterable[bytes | memoryview]
    own: bool = False


@dataclass(frozen=True)
class FileKind:
    """One kind. name: as scans call it. fits: whether a file's bytes, which are not empty, are of it.

    decode: searches them. errors: what it raises with messages of its own, which repeat nothing of the file.
    rank: kinds are tried from the lowest to the highest. parts: of a container; those and what `decode` has searched
    are together every byte of it. starts: two bytes or more with which small files of it begin; cells of bytes are told
    by them.
    """

    name: str
    rank: int
    fits: Callable[[memoryview], bool]
    decode: Callable[[memoryview, Collector, Role], None] | None = None
    errors: tuple[type[Exception], ...] = ()
    parts: Callable[[memoryview], Iterator[Part]] | None = None
    starts: tuple[bytes, ...] = ()


@cache
def file_kinds() -> tuple[FileKind, ...]:
    """Every kind that is known, in the order in which they are tried."""
    found = [kind for module in own_modules() if isinstance(kind := getattr(module, "KIND", None), FileKind)]
    found += [plugins.load(GROUP, name) for name in plugins.names(GROUP)]
    return tuple(sorted(found, key=lambda kind: (kind.rank, kind.name)))


@cache
def own_errors() -> tuple[type[Exception], ...]:
    """What the decoders of all kinds raise with messages of their own."""
    return tuple(error for kind in file_kinds() for error in kind.errors)


def own_modules() -> tuple[object, ...]:
    """The modules of this package and of its folders, imported."""
    found = pkgutil.walk_packages(own.__path__, f"{own.__name__}.")
    return tuple(importlib.import_module(module.name) for module in found)
