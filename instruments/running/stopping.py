"""Cancellation of work in threads when the Prefect flow run is cancelled.

A signal reaches only the main thread, and Prefect lets running tasks continue. After half a minute
Prefect kills the process, possibly during a write.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_is_over = threading.Event()  # set when the process must end
_LOOK_S = 0.5  # seconds between two looks at the event during a sleep


class Stopped(BaseException):
    """Raised when the flow run ends; a BaseException, so that it does not count as a failure."""


@contextmanager
def stop_with_flow() -> Iterator[None]:
    """If a signal ends the ``with`` block, make ``go_on`` raise ``Stopped`` in all threads.

    A thread that enters its block after the signal is stopped, too. Signals reach only the main
    thread, so the process goes on if that thread enters a block again.
    """
    if threading.current_thread() is threading.main_thread():
        _is_over.clear()
    try:
        yield
    except BaseException as error:  # signals raise KeyboardInterrupt or a Prefect class
        if not isinstance(error, Exception):
            _is_over.set()
        raise


def rest(seconds: float) -> None:
    """Sleep for some seconds; raise ``Stopped`` as soon as the flow run is ending."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        go_on()
        time.sleep(min(left, _LOOK_S))


def go_on() -> None:
    """Raise ``Stopped`` if the flow run is ending, else do nothing."""
    if _is_over.is_set():
        raise Stopped
