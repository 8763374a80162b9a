"""Progress of long steps, reported to whoever listens (the command line draws bars)."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int, int], None]


def _nobody(step: str, done: int, total: int) -> None:
    """Nobody listens: a notebook, a worker, a test."""


_listener: Listener = _nobody


def listen(listener: Listener | None) -> None:
    """Send all reports to ``listener`` from now on; None stops that.

    One for the whole process, like the terminal it draws on. It is called from many threads.
    """
    global _listener
    _listener = listener or _nobody


def report(step: str, done: int, total: int) -> None:
    """Say that ``done`` of ``total`` units of a step are done; the step's name identifies it."""
    _listener(step, done, total)
