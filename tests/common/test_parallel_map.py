"""Questions that wait together: answers in order, and no thread for one alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pii_tracer.common.parallel_map import several


@pytest.mark.parametrize("number", [0, 1, 2, 201])
def test_every_answer_is_there_in_order_and_one_alone_needs_no_thread(number: int) -> None:
    mine = threading.get_ident()
    found = list(several(lambda n: (n, threading.get_ident() == mine), range(number)))
    assert found == [(n, number == 1) for n in range(number)]


@pytest.mark.parametrize("number", [1, 3])
def test_a_question_that_fails_is_told(number: int) -> None:
    def fails(n: int) -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(several(fails, range(number)))


def test_no_more_is_taken_than_is_asked_at_once() -> None:
    taken: list[int] = []

    def things() -> Iterator[int]:
        for n in range(1_000):
            taken.append(n)
            yield n

    assert next(several(lambda n: n, things())) == 0
    assert len(taken) == 200
