"""When to stop asking: a site that refuses us, or fails again and again, is left alone."""

from __future__ import annotations

import threading

from core.errors import SourceUnavailable

REFUSALS_TO_STOP = 10  # answers 403 or 429 in a row
FAILURES_TO_STOP = 5  # addresses in a row, each of which was tried as often as we try


class CircuitOpen(SourceUnavailable):
    """The site is left alone for the rest of this run: to try again at once would be no better."""


class Circuit:
    """Counts refusals and failed addresses in a row; once open, it stays open for this run.

    Args:
        sites: their addresses, for the message.
    """

    def __init__(self, sites: str) -> None:
        self._sites = sites
        self._lock = threading.Lock()
        self._refusals = self._failures = 0

    def note_status(self, status: int) -> None:
        """Count an answer."""
        with self._lock:
            if status in {403, 429}:
                self._refusals += 1
            elif not 300 <= status < 400:  # a redirect may lead to the next refusal
                self._refusals = 0

    def note_address(self, has_failed: bool) -> None:
        """Count an address that failed in all tries, or gave an answer that we understand."""
        with self._lock:
            self._failures = self._failures + 1 if has_failed else 0

    def require_closed(self) -> None:
        """Let a request pass.

        Raises:
            CircuitOpen: there were too many refusals or failures.
        """
        with self._lock:
            if self._refusals >= REFUSALS_TO_STOP:
                raise CircuitOpen(
                    f"{self._refusals} requests in a row were refused (403 or 429), so no more "
                    f"are sent to {self._sites} in this run; "
                    "wait some hours, or raise TIDEMARK_REQUEST_INTERVAL_S"
                )
            if self._failures >= FAILURES_TO_STOP:
                raise CircuitOpen(
                    f"{self._failures} addresses in a row failed, so no more are asked of "
                    f"{self._sites} in this run; run the same command again later"
                )
