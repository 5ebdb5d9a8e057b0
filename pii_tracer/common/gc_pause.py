"""Parsing many statements, and making many objects that stay, without the garbage collector in the way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_STATEMENTS = 200_000
_LASTING = 1_000_000
"""Objects of a plan stay; the trees that it lets go of in the meantime are 150 MiB at most."""


@contextmanager
def rare_collections(allocations: int = _STATEMENTS) -> Iterator[None]:
    """Syntax trees point back at their parents, and the collector would walk the living ones again and again.

    It runs rarely inside, does not look at what was there before (an inventory is millions of objects), and goes on as
    always afterwards. allocations: containers made and not let go of, until it runs.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(allocations, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def lasting_objects() -> Iterator[None]:
    """For what a plan is made of: the collector runs rarely inside, and does not look at it all at the end either.

    What was made counts as old from then on, as if it had been looked at: little of it is let go of.
    """
    with rare_collections(_LASTING):
        yield
        gc.freeze()
