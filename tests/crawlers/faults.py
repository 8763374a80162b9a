"""Faults that the tests of all sources inject, and their distribution in `make test`."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from crawlers.web import connections, exchange
from simulator.server import Fault

T = TypeVar("T")
Outcome = TypeVar("Outcome")

ALWAYS = 10**6  # occurrences of a permanent fault
# Every name of simulator.faults.KNOBS, by class.
CLASSES = {
    "rate_limit": [
        "429 with Retry-After in seconds", "429 with Retry-After as a date",
        "429 without Retry-After",
    ],
    "unavailable": ["503 with Retry-After", "503 without Retry-After"],
    "refusal": ["403", "404"],
    "wrong_content": [
        "an error page as 200", "an error object as 200", "an empty body", "a wrong charset",
    ],
    "damage": ["a truncated body", "no answer", "a gzip bomb"],
    "slowness": ["a slow drip", "a long silence"],
    "redirect": ["a redirect loop", "a redirect off the host"],
}  # fmt: skip
# The fetcher's retries hide these, if they come once.
TRANSIENT = {
    "rate_limit": CLASSES["rate_limit"],
    "unavailable": CLASSES["unavailable"],
    "damage": ["a truncated body", "no answer"],
}
WAITING = [name for names in TRANSIENT.values() for name in names if "with Retry-After" in name]
# As permanent faults. Those with Retry-After take minutes: each retry waits.
PERMANENT = {
    kind: [name for name in names if name not in WAITING] for kind, names in CLASSES.items()
}
FINAL = ["403", "404"]  # the cache may keep these for a while


def assign(classes: dict[str, list[str]], position: int) -> list[str]:
    return [names[position % len(names)] for names in classes.values()]


def deal(items: Sequence[T], number: int, of: int) -> list[T]:
    return list(items[number::of]) or [items[number % len(items)]]


@contextlib.contextmanager
def _hurried(response_s: float) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "WALL_CLOCK_S", response_s)
        patch.setattr(connections, "READ_TIMEOUT_S", response_s)
        patch.setattr(exchange, "MAX_TRIES", 2)
        yield


def crawl_until_met(
    crawl: Callable[[Path], Outcome], fault: Fault, folder: Path
) -> tuple[Path, Outcome]:
    """Crawl into new folders until the fault was met: on a busy machine a crawl may end before."""
    if fault.kind not in ("drip", "stall"):
        return folder, crawl(folder)
    for response_s in (0.3, 1.0, 3.0):
        with _hurried(response_s):
            outcome = crawl(home := folder / str(response_s))
        if fault.times < ALWAYS:
            break
    return home, outcome
