import logging

import pytest

from core import progress
from tasks.prefect import observe
from tasks.prefect.observe import tell_progress


def test_progress_is_told_once_a_minute_and_at_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(observe, "_told_at", {})
    monkeypatch.setattr(observe.time, "monotonic", lambda: float(next(clock)))
    caplog.set_level(logging.INFO, "tasks")
    for done in range(1, 101):  # a second each
        tell_progress("score m", done, 101, 1)
    assert caplog.messages == [
        "score m: 1 of 101, 1 failed",
        "score m: 61 of 101, 1 failed",
        "score m: 100 of 101, 1 failed",
    ]


def test_several_may_listen_to_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_further", ())
    heard: list[tuple[str, int, int]] = []

    def listener(step: str, done: int, total: int, _: int) -> None:
        heard.append((step, done, total))

    progress.listen(listener)
    progress.listen_too(listener)
    progress.listen_too(listener)
    progress.report("crawl", 1, 2)
    progress.listen(None)
    progress.report("crawl", 2, 2)
    assert heard == [("crawl", 1, 2)] * 2 + [("crawl", 2, 2)]
