"""In which order a bare folder's columns stand in its table, as INSERT goes by it: told by its files, or by nobody.

Engines read these files by name, so that files in one folder may differ in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def table_order(orders: Sequence[Sequence[str]], by_spark: Callable[[int], bool]) -> tuple[str, ...] | None:
    """The columns in the table's order; None where the files do not tell it.

    orders: of each file's columns, without files that have none. by_spark: whether Spark wrote the file with a number:
    where files disagree, those of the engine that runs the INSERTs have the order that it goes by.
    """
    agreed = _agreed(orders)
    if agreed is None:
        agreed = _agreed([order for number, order in enumerate(orders) if by_spark(number)])
    everything = {name for order in orders for name in order}
    return agreed if agreed is not None and set(agreed) == everything else None


def _agreed(orders: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """The longest of them, where all others are in its order."""
    longest = max(orders, key=len, default=())
    place = {name: number for number, name in enumerate(longest)}
    for order in orders:
        places = [place.get(name, -1) for name in order]
        if -1 in places or places != sorted(places):
            return None
    return tuple(longest)
