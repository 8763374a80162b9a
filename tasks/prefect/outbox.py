"""Background messages to the Prefect server; its failures cost only a line of the log."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Callable

from prefect.client.orchestration import SyncPrefectClient, get_client

_log = logging.getLogger(__name__)

MAX_WAITING = 200  # messages in the queue
DRAIN_S = 10.0  # longest wait for the queue when a process ends

Send = Callable[[SyncPrefectClient], object]


class Outbox:
    """One thread that sends one message after the other."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[str, Send]] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def post(self, what: str, send: Send) -> bool:
        """Have the thread call ``send``; if the queue is full, log ``what`` and return False."""
        self._start()
        try:
            self._waiting.put_nowait((what, send))
        except queue.Full:
            _log.warning("%s: not shown, the Prefect server does not keep up", what)
            return False
        return True

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Wait until all messages are sent or dropped; return False after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while self._waiting.unfinished_tasks:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                # A daemon: a server that never answers must not keep the process alive.
                self._thread = threading.Thread(target=self._work, name="outbox", daemon=True)
                self._thread.start()
                atexit.register(self.drain)

    def _work(self) -> None:
        while True:
            what, send = self._waiting.get()
            try:
                with get_client(sync_client=True) as client:
                    send(client)
            except Exception as error:  # noqa: BLE001 - Prefect's and its client's are no family
                _log.warning("%s: not shown, the Prefect server did not take it: %s", what, error)
            finally:
                self._waiting.task_done()


outbox = Outbox()
