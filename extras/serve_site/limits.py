"""Limits on clients of the report server: time, number of connections, and lines in the log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256
HEAD_S = 10.0  # for the complete head of a request, and for the next request
STALL_S = 60.0  # for reading the next part of a response
_LINES_A_MINUTE = 10


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 that closes slow connections, and holds at most MAX_CONNECTIONS.

    If there are more, one is closed that waits for a request: of the address with the most such
    connections, the oldest. So requests that are never completed do not keep out other clients. If
    no other connection waits, an address that holds more than half of them loses its oldest one.

    uvicorn itself waits for the head of a request, and for a reader that pauses, without limit.
    """

    _head: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _begun = 0.0  # time of the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; close a waiting connection if there are too many."""
        super().connection_made(transport)
        self._begun = self.loop.time()
        self._watch_head()
        if len(self.connections) > MAX_CONNECTIONS:
            self._most_idle().transport.abort()

    def _most_idle(self) -> LimitedProtocol:
        """Return the connection to close, which is this one itself if no other may be closed."""
        known = [
            each
            for each in self.connections
            if isinstance(each, LimitedProtocol) and not each.transport.is_closing()
        ]
        held = Counter(each._address for each in known)
        many = [each for each in known if held[each._address] > MAX_CONNECTIONS / 2]
        waiting = [each for each in known if each._head is not None]
        if len(waiting) <= 1 and held[self._address] <= MAX_CONNECTIONS / 2 and many:
            return min(many, key=lambda each: each._begun)  # slow readers of one address
        addresses = Counter(each._address for each in waiting)
        return max(waiting, key=lambda each: (addresses[each._address], -each._begun), default=self)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a request has begun."""
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch_head()

    def _watch_head(self) -> None:
        """End the connection if a request's headers take too long."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        if is_waiting and self._head is None:
            self._head = self.loop.call_later(HEAD_S, self.transport.abort)
        elif not is_waiting:
            self._head = _cancel(self._head)

    def pause_writing(self) -> None:
        """Give the client STALL_S to read what has been sent."""
        super().pause_writing()
        _cancel(self._stall)
        self._stall = self.loop.call_later(STALL_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the clock, since the client has read something."""
        super().resume_writing()
        self._stall = _cancel(self._stall)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both clocks."""
        super().connection_lost(exc)
        self._head = _cancel(self._head)
        self._stall = _cancel(self._stall)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None


class SparseLog(logging.Filter):
    """Filter that passes ten records a minute, so that no client can fill the disk with the log."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = 0
        self._num_records = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for the first records of each minute."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute = minute
            self._num_records = 0
        self._num_records += 1
        return self._num_records <= _LINES_A_MINUTE
