"""Parsing many statements, and making many objects that stay, without the garbage collector in the way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS = 200_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Syntax trees point back at their parents, and the collector would walk the living ones again and again.

    It runs rarely inside, does not look at what was there before (an inventory is millions of objects), and goes on as
    always afterwards.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
