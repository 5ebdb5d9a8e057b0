"""Orders of what waits for other things."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import networkx as nx


class Circle(Exception):
    """Things that wait for each other. members: of one such circle, each waits for the next, the last is the first."""

    def __init__(self, members: tuple[str, ...]) -> None:
        super().__init__()
        self.members = members


def in_order(after: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Everything behind all that it waits for; where that leaves a choice, as it was given.

    after: for each thing what it waits for, which has to be given, too.

    Raises:
        Circle: there is no such order.
    """
    place = {name: number for number, name in enumerate(after)}
    graph = nx.DiGraph((earlier, later) for later, earliers in after.items() for earlier in earliers)
    graph.add_nodes_from(after)
    try:
        return tuple(nx.lexicographical_topological_sort(graph, key=place.__getitem__))
    except nx.NetworkXUnfeasible:
        edges = nx.find_cycle(graph, orientation="reverse")
        raise Circle((edges[0][1], *(earlier for earlier, *_ in edges))) from None
