import threading
import time


class SimulatedTime:
    """Replaces the module ``time`` in ``pacing``: sleep only advances its clock."""

    def __init__(self) -> None:
        self._now = time.time()
        self._lock = threading.Lock()
        self.slept_s = 0.0

    def time(self) -> float:
        return self._now

    monotonic = time  # of this class

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds
            self.slept_s += seconds
