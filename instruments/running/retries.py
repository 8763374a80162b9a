"""Table of the errors that are retried, and of the pauses before each attempt.

Other errors, such as ``DiskFull``, are not retried, because the same inputs would fail again.
"""

from __future__ import annotations

import errno
import logging
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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
from crawlers.web.pacing import CircuitOpen
from instruments.running.stopping import rest

# Pauses in seconds before each further attempt, by class of error. The most specific class applies.
PAUSES: dict[type[TidemarkError], tuple[float, ...]] = {
    SourceUnavailable: (10, 60),  # the fetcher has already retried for minutes
    CircuitOpen: (),  # never retry: after many failures, the run skips the site
    StorageError: (5, 30, 120, 300),
    DiskFull: (),
    ModelLoadError: (30, 120),
    ModelError: (30, 120),  # from remote models; their client has already retried
    NotMeasurable: (),
    WarehouseError: (5, 30, 120, 300),
}
# Errors of these classes are retried only if their cause is a network, store or database failure.
_BY_CAUSE = (StorageError, ModelError, WarehouseError)
_PASSING = {
    errno.EAGAIN,
    errno.EBUSY,  # s3fs raises EBUSY for status 503
    errno.EIO,
    errno.EREMOTEIO,  # s3fs raises EREMOTEIO for status 500
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPIPE,
}
# Transient errors of HTTP clients and drivers by name, as the packages may not be installed.
_PASSING_NAMES = {"TransportError", "ConnectionError", "Timeout", "ConnectionException"}
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}
_SPREAD = (0.8, 1.2)  # random factor of pauses, so that many processes do not retry at once
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def pauses_of(error: BaseException) -> tuple[float, ...]:
    """Return the pauses in seconds before each further attempt; empty: do not retry."""
    kind = next((each for each in type(error).__mro__ if each in PAUSES), None)
    if kind is None or (isinstance(error, _BY_CAUSE) and not _may_pass(error)):
        return ()
    return PAUSES[kind]


def _may_pass(error: BaseException) -> bool:
    """Return True if a network, object store or database failure caused the error."""
    return any(_is_passing(cause) for cause in _causes(error))


def _is_passing(cause: BaseException) -> bool:
    """Return True for a transient error of the network, an object store or a database."""
    names = {each.__name__ for each in type(cause).__mro__}
    if "BotoCoreError" in names:  # an object store does not answer, or credentials are missing
        return names.isdisjoint({"NoCredentialsError", "PartialCredentialsError"})
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if status is not None:
        return status in _PASSING_STATUS
    if isinstance(cause, (ConnectionError, TimeoutError)):
        return True
    if isinstance(cause, OSError) and cause.errno in _PASSING:
        return True
    return not names.isdisjoint(_PASSING_NAMES)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def retrying(what: str, work: Callable[[], _T], sleep: Callable[[float], Any] = rest) -> _T:
    """Run ``work``; retry it after transient errors; raise the error of the last attempt."""
    tries: dict[tuple[float, ...], int] = {}  # number of retries, by pauses of a class of error
    while True:
        try:
            return work()
        except TidemarkError as error:
            pauses = pauses_of(error)
            done = tries.setdefault(pauses, 0)
            if done >= len(pauses):
                raise
            tries[pauses] += 1
            pause = pauses[done] * random.uniform(*_SPREAD)  # noqa: S311 - no secret
            says = f"again in {pause:.0f} s (try {done + 2} of {len(pauses) + 1})"
            _log.warning("%s: %s: %s; %s", what, type(error).__name__, error, says)
            sleep(pause)
