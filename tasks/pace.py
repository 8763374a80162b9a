"""A bound on how many task runs a process starts a second, where a server records them.

A Prefect server on two cores records 25 to 30 task runs a second; what comes faster for long fills
its event queue of 10,000 entries, and what does not fit is lost (docs/scale.md). Cells take longer
than that; those that fail at once do not.
"""

from __future__ import annotations

import threading
import time

RATE = 20.0  # task runs a second
BURST = 400  # at once after a pause: some 2,000 events


class Pace:
    """Lets so many pass a second, after a pause some more; may be used by several threads.

    Args:
        rate: passes a second.
        burst: passes at once after a pause of ``burst / rate`` seconds.
    """

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = float(burst), time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next may pass."""
        with self._lock:
            now = time.monotonic()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate) - 1
            self._at = now
            pause_s = -self._left / self._rate
        if pause_s > 0:
            time.sleep(pause_s)
