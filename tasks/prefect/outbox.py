"""Background messages to the Prefect server; failures to send are only logged."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Callable

from prefect.client.orchestration import SyncPrefectClient, get_client

_log = logging.getLogger(__name__)

MAX_WAITING = 200  # maximum number of queued messages
DRAIN_S = 10.0  # maximum wait (s) for queued messages when the process ends

Send = Callable[[SyncPrefectClient], object]


class Outbox:
    """A queue of messages, and a thread that sends them one after the other."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[str, Send]] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def post(self, what: str, send: Send) -> bool:
        """Queue a call of ``send``; if the queue is full, log ``what`` and return False."""
        self._start()
        try:
            self._waiting.put_nowait((what, send))
        except queue.Full:
            _log.warning("%s: not shown, the Prefect server does not keep up", what)
            return False
        return True

    def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Wait until the queue is empty and return True; return False after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while self._waiting.unfinished_tasks:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                # The thread is a daemon, so that a hanging server cannot keep the process alive.
                self._thread = threading.Thread(target=self._work, name="outbox", daemon=True)
                self._thread.start()
                atexit.register(self._close)

    def _close(self) -> None:
        if not self.drain():
            _log.warning(
                "%s messages not shown on the Prefect server: it took more than %s s at the end",
                self._waiting.unfinished_tasks,
                DRAIN_S,
            )

    def _work(self) -> None:
        while True:
            what, send = self._waiting.get()
            try:
                with get_client(sync_client=True) as client:
                    send(client)
            except Exception as error:  # noqa: BLE001 - Prefect's and its client's are no family
                _log.warning("%s: not shown, the Prefect server refused it: %s", what, error)
            finally:
                self._waiting.task_done()


outbox = Outbox()
