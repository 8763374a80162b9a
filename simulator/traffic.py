"""What a site counts of its visitors: how close after each other they ask, and how many at once."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Traffic:
    """The requests of one site.

    A POST is left out of the arrivals: only git sends any, to go on with a transfer that a GET
    began.

    Attributes:
        arrivals: when each request came, ``time.monotonic()``.
        most_at_once: requests that the site was answering at the same time, at most.
        num_refused: requests that broke the limit that was set, and were answered 429.
    """

    arrivals: list[float] = field(default_factory=list)
    most_at_once: int = 0
    num_refused: int = 0
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def smallest_gap_s(self) -> float:
        """The least time between two arrivals that follow each other; infinite below two."""
        return min((late - early for early, late in pairwise(self.arrivals)), default=math.inf)

    def arrive(self, is_continuation: bool) -> float:
        """Count a request that begins; return the seconds since the one before it."""
        now = time.monotonic()
        with self._lock:
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            if is_continuation:
                return math.inf
            gap_s = now - self.arrivals[-1] if self.arrivals else math.inf
            self.arrivals.append(now)
            return gap_s

    def leave(self) -> None:
        """Count a request that ends."""
        with self._lock:
            self._open -= 1

    def refuse(self) -> None:
        """Count a request that came too soon."""
        with self._lock:
            self.num_refused += 1

    def clear(self) -> None:
        """Forget the past; what is being answered goes on."""
        with self._lock:
            self.arrivals.clear()
            self.most_at_once = self.num_refused = 0
