"""Progress of long steps, reported to listeners such as a terminal or a server."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, int, int], None]


_listener: Listener | None = None
_further: tuple[Listener, ...] = ()


def listen(listener: Listener | None) -> None:
    """Send all reports of this process, from any thread, to ``listener``; None stops that."""
    global _listener
    _listener = listener


def listen_too(listener: Listener) -> None:
    """Add a second listener for the rest of the process."""
    global _further
    if listener not in _further:
        _further = (*_further, listener)


def report(step: str, done: int, total: int) -> None:
    """Report that ``done`` of ``total`` units are done; the name identifies the step."""
    for listener in (_listener, *_further):
        if listener is not None:
            listener(step, done, total)


def duration(seconds: float | None) -> str:
    """Return ``45 s``, ``3 min 20 s``, ``5 h 10 min`` or ``2 d 4 h``; ``not known`` for None."""
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
