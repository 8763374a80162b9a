"""End the work in threads when the flow run that waits for it is cancelled.

A signal reaches only the main thread, and Prefect lets running tasks continue. After half a
minute it kills the process, possibly during a write.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from core.storage.store import Store

_is_over = threading.Event()  # one per process, since a signal ends the whole process


class Stopped(BaseException):
    """The flow run is ending; a BaseException, so that no handler records it as a failure."""


@contextmanager
def stop_with_flow() -> Iterator[None]:
    """If a signal ends this block, make ``go_on`` raise ``Stopped`` in all threads."""
    _is_over.clear()
    try:
        yield
    except BaseException as error:  # a signal raises KeyboardInterrupt or a Prefect class
        if not isinstance(error, Exception):
            _is_over.set()
        raise


def rest(seconds: float) -> None:
    """Sleep; raise ``Stopped`` as soon as the flow run is ending."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        go_on()
        time.sleep(min(left, 0.5))


def go_on() -> None:
    """Raise ``Stopped`` if the flow run is ending, else do nothing. Takes almost no time."""
    if _is_over.is_set():
        raise Stopped


def is_written(store: Store, path: str) -> bool:
    """Return True if a cell's file exists; raise ``Stopped`` if the flow run is ending."""
    go_on()
    return store.exists(path)


def never_done(_name: str) -> bool:
    """Return False; a wait with this function ends with the other process, or by ``Stopped``."""
    go_on()
    return False
