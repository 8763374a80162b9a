"""Ending what runs in threads when the flow run that waits for it is cancelled.

A signal reaches the main thread alone. Prefect lets tasks that are under way run to their end, or
until the process is killed half a minute later, in the middle of a file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_is_over = threading.Event()  # one for the process: the signal is for all of it


class Stopped(BaseException):
    """The flow run is being ended; no error of the task's, so nothing may keep it as a hole."""


@contextmanager
def stop_with_flow() -> Iterator[None]:
    """Let ``go_on`` raise in all threads, once this block is left by a signal."""
    _is_over.clear()
    try:
        yield
    except Exception:
        raise
    except BaseException:
        _is_over.set()
        raise


def rest(seconds: float) -> None:
    """Sleep, but not beyond the end of the flow run: then raise ``Stopped``."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        go_on()
        time.sleep(min(left, 0.5))


def go_on() -> None:
    """Do nothing, or raise ``Stopped`` if the flow run is being ended. Costs next to nothing."""
    if _is_over.is_set():
        raise Stopped
