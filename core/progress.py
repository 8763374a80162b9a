"""Progress of long steps, reported to whoever listens: a terminal's bars, a server's artifacts."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int, int], None]


def _nobody(step: str, done: int, total: int) -> None:
    """Nobody listens: a notebook, a worker, a test."""


_listener: Listener = _nobody
_further: tuple[Listener, ...] = ()


def listen(listener: Listener | None) -> None:
    """Send all reports to ``listener`` from now on; None stops that.

    One for the whole process, like the terminal it draws on. It is called from many threads.
    """
    global _listener
    _listener = listener or _nobody


def listen_too(listener: Listener) -> None:
    """Send all reports to ``listener``, too, for as long as the process lives."""
    global _further
    if listener not in _further:
        _further = (*_further, listener)


def report(step: str, done: int, total: int) -> None:
    """Say that ``done`` of ``total`` units of a step are done; the step's name identifies it."""
    for listener in (_listener, *_further):
        listener(step, done, total)
