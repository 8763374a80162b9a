from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from models.prefetch import prefetched


def test_items_come_in_order_and_all_of_them():
    assert list(prefetched(range(50))) == list(range(50))
    assert list(prefetched([])) == []
    assert list(prefetched([None, False, None])) == [None, False, None]


def test_the_next_item_is_made_while_one_is_in_use_and_no_other():
    made: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(4):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    coming = prefetched(items())
    assert next(coming) == 0
    assert second.wait(10)  # without being asked for
    assert made == [0, 1]
    assert list(coming) == [1, 2, 3]


def test_items_are_made_one_at_a_time():
    busy = threading.Lock()

    def items() -> Iterator[int]:
        for number in range(10):
            assert busy.acquire(blocking=False)
            time.sleep(0.001)
            busy.release()
            yield number

    assert list(prefetched(items())) == list(range(10))


def test_an_error_comes_after_the_items_before_it():
    def items() -> Iterator[int]:
        yield 0
        yield 1
        raise ValueError("broken")

    seen = []
    with pytest.raises(ValueError, match="broken"):
        for item in prefetched(items()):
            seen.append(item)
    assert seen == [0, 1]


def test_who_stops_half_way_leaves_no_thread_behind():
    before = threading.active_count()
    closed = []

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(True)

    source = items()
    coming = prefetched(source)
    assert next(coming) == 0
    coming.close()
    assert threading.active_count() == before
    source.close()
    assert closed == [True]
