import contextlib
import logging
import threading
from collections.abc import Iterator

import pytest

from tasks.prefect import outbox as module
from tasks.prefect.outbox import Outbox


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def client(sync_client: bool) -> Iterator[None]:
        yield None

    monkeypatch.setattr(module, "get_client", client)


def refuse(_: object) -> None:
    raise RuntimeError("422: no such thing")


def test_what_is_refused_is_logged_and_the_next_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    box, sent = Outbox(), []
    assert box.post("the first", refuse)
    assert box.post("the second", lambda _: sent.append(2))
    assert box.drain(10)
    assert sent == [2]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("the first: not shown")
    assert "422: no such thing" in record.getMessage()


def test_a_server_that_hangs_holds_nobody_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    box, answers = Outbox(), threading.Event()
    # A post that waited for the answer would never return.
    posted = [box.post(f"number {number}", lambda _: answers.wait()) for number in range(10)]
    assert 3 <= posted.count(True) <= 4  # one of them may be under way
    assert "the Prefect server does not keep up" in caplog.text
    assert not box.drain(0.1)
    answers.set()
    assert box.drain(10)
