"""Progress of long steps, reported to listeners such as a terminal or a server."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int, int, int], None]


_listener: Listener | None = None
_further: tuple[Listener, ...] = ()


def listen(listener: Listener | None) -> None:
    """Send all later progress reports of this process to ``listener`` (None: to nobody)."""
    global _listener
    _listener = listener


def listen_too(listener: Listener) -> None:
    """Add a further listener, which receives all progress reports until the process ends."""
    global _further
    if listener not in _further:
        _further = (*_further, listener)


def report(step: str, done: int, total: int, failed: int = 0) -> None:
    """Report that ``done`` of ``total`` units of a step are done, and ``failed`` others failed."""
    for listener in (_listener, *_further):
        if listener is not None:
            listener(step, done, total, failed)


def counted(number: int, unit: str) -> str:
    """Return a number of things as text: ``1 cell``, ``1,200 cells``."""
    return f"1 {unit}" if number == 1 else f"{number:,} {unit}s"


def duration(seconds: float | None) -> str:
    """Return a duration as text, such as ``3 min 20 s``, or ``not known`` if it is None."""
    if seconds is None:
        return "not known"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
