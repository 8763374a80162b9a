"""Which errors are worth another try, after which pauses: one table for all tasks.

What is not in the table is not tried again: the same text, weights and settings fail the same way
(``MalformedInput``, ``NotMeasurable``, ``CheckFailed``, ``DiskFull`` …). A batch that is too large
for the device is scored again at once with a smaller one (``tasks/scoring.py``).
"""

from __future__ import annotations

import errno
import logging
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from core.errors import (
    DiskFull,
    ModelError,
    ModelLoadError,
    NotMeasurable,
    SourceUnavailable,
    StorageError,
    TidemarkError,
    WarehouseError,
)
from crawlers.circuit import CircuitOpen
from tasks.stopping import rest

# Seconds before the second try, the third, and so on. The most special class of an error counts.
PAUSES: dict[type[TidemarkError], tuple[float, ...]] = {
    SourceUnavailable: (10, 60),  # the fetcher has already retried each request for minutes
    CircuitOpen: (),  # the site wants to be left alone
    StorageError: (5, 30, 120, 300),
    DiskFull: (),
    ModelLoadError: (30, 120),
    ModelError: (30, 120),  # of a remote model, whose client has retried each request, too
    NotMeasurable: (),
    WarehouseError: (5, 30, 120, 300),
}
# A site that is unavailable is so by its name. Of the others only what the network, the store or
# the database did is worth another try, and that is known from what caused them.
_BY_CAUSE = (StorageError, ModelError, WarehouseError)
_PASSING = {
    errno.EAGAIN,
    errno.EBUSY,  # what s3fs makes of 503
    errno.EIO,
    errno.EREMOTEIO,  # and of 500
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPIPE,
}
# Of HTTP clients and database drivers, which are not all installed and are no family.
_PASSING_NAMES = {"TransportError", "ConnectionError", "Timeout", "ConnectionException"}
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}
# DuckDB has one class for whatever is wrong with a PostgreSQL server, and says it in words.
_PASSING_WORDS = re.compile(
    r"could not connect|connection (refused|reset|timed out)|(closed|terminating) (the )?connection"
    r"|database system is (starting up|shutting down)",
    re.IGNORECASE,
)
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def pauses_of(error: BaseException) -> tuple[float, ...]:
    """Return the seconds to wait before each further try after an error; none: give up."""
    kind = next((each for each in type(error).__mro__ if each in PAUSES), None)
    if kind is None or (isinstance(error, _BY_CAUSE) and not _may_pass(error)):
        return ()
    return PAUSES[kind]


def _may_pass(error: BaseException) -> bool:
    """Whether the network, an object store or a database was the cause."""
    if isinstance(error, WarehouseError) and _PASSING_WORDS.search(str(error)):
        return True
    return any(_is_passing(cause) for cause in _causes(error))


def _is_passing(cause: BaseException) -> bool:
    if isinstance(cause, BotoCoreError):
        return type(cause).__name__ not in {"NoCredentialsError", "PartialCredentialsError"}
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if status is not None:
        return status in _PASSING_STATUS
    if isinstance(cause, (ConnectionError, TimeoutError)):
        return True
    if isinstance(cause, OSError) and cause.errno in _PASSING:
        return True
    return any(each.__name__ in _PASSING_NAMES for each in type(cause).__mro__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def retrying(what: str, work: Callable[[], _T], sleep: Callable[[float], Any] = rest) -> _T:
    """Do ``work``, again after a pause where its error may pass; each kind has its own pauses.

    Args:
        what: names the work in the log.
        work: safe to do again.
        sleep: how to wait.

    Raises:
        Exception: what the last try raised.
    """
    tries: dict[tuple[float, ...], int] = {}
    while True:
        try:
            return work()
        except TidemarkError as error:
            pauses = pauses_of(error)
            done = tries.setdefault(pauses, 0)
            if done >= len(pauses):
                raise
            tries[pauses] += 1
            pause = pauses[done] * random.uniform(0.8, 1.2)  # noqa: S311, not all at once
            _log.warning(
                "%s: %s: %s; again in %.0f s (try %d of %d)",
                what,
                type(error).__name__,
                error,
                pause,
                done + 2,
                len(pauses) + 1,
            )
            sleep(pause)
