"""A limit of time for a whole query, however its library waits."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Answer = TypeVar("_Answer")


def answer_within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """Return what ``ask`` returns, or raise what it raises; TimeoutError after ``seconds``.

    Libraries limit only each wait, so a server that sends a byte now and then never times out.
    After TimeoutError, the query continues in a daemon thread, which ends with the process.
    """
    answer: Future[_Answer] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            answer.set_result(context.run(ask))
        except BaseException as error:  # noqa: BLE001 - raised by ``answer.result``
            answer.set_exception(error)

    threading.Thread(target=run, name="query", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        if answer.done():
            raise  # the query's own
        raise TimeoutError(f"no whole answer in {seconds:.3g} s") from error
