"""Datasets or columns as a picture whose nodes are links: upstream on the left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.lineage.layered_drawing import lay_out, shorten

HEIGHT = 56
_LETTERS = 23
_COLUMN = 230
MOST_WIDE = 24
"""Layers that the style sheet has a width for."""


@dataclass(frozen=True)
class Drawn:
    """A node's place. item: of the caller."""

    key: str
    label: str
    x: float
    y: float


@dataclass(frozen=True)
class HopPicture:
    """layers: how many columns of nodes there are; paths: of SVG."""

    width: float
    height: float
    layers: int
    nodes: tuple[Drawn, ...]
    paths: tuple[str, ...]


def hop_picture(names: Sequence[tuple[str, str]], links: Sequence[tuple[str, str]]) -> HopPicture:
    """Draw nodes (key, name) and links between keys; links that close a circle are left out of the picture."""
    keys = [key for key, _ in names]
    made = lay_out(keys, links, dict.fromkeys(keys, float(HEIGHT)))
    nodes = tuple(Drawn(key, shorten(name, _LETTERS), made.x[key], made.y[key]) for key, name in names)
    layers = min(MOST_WIDE, 1 + round((made.width - 1) // _COLUMN))
    return HopPicture(made.width, made.height, layers, nodes, tuple(path.path for path in made.paths))
