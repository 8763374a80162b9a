"""Which faults patience helps against; and a crawl without it, but with enough to come to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from crawlers import connections, exchange, transfer
from simulator.server import Fault

ALWAYS = 10**6  # how often a fault that stays comes
# These may pass, and a fetcher that is patient does not notice them.
PASSING = [
    "429 with Retry-After in seconds", "429 with Retry-After as a date", "429 without Retry-After",
    "503 with Retry-After", "503 without Retry-After", "a truncated body", "no answer",
]  # fmt: skip
FINAL = ["403", "404"]  # the site's own word: it may be remembered for a while
WAITING = [name for name in PASSING if "with Retry-After" in name]
Outcome = TypeVar("Outcome")


@contextlib.contextmanager
def _hurried(answer_s: float) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfer, "WALL_CLOCK_S", answer_s)
        patch.setattr(connections, "READ_TIMEOUT_S", answer_s)
        patch.setattr(exchange, "MAX_TRIES", 2)
        yield


def crawl_until_met(
    crawl: Callable[[Path], Outcome], fault: Fault, folder: Path
) -> tuple[Path, Outcome]:
    """Crawl into a new folder until a fault that stays was met; return the folder and the outcome.

    On a busy machine a good answer may come too late, too, and end a crawl before it comes so far.
    """
    if fault.kind not in ("drip", "stall"):
        return folder, crawl(folder)
    for answer_s in (0.3, 1.0, 3.0):
        with _hurried(answer_s):
            outcome = crawl(home := folder / str(answer_s))
        if fault.times < ALWAYS:
            break
    return home, outcome
