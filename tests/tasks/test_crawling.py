import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from prefect.client.schemas.objects import TaskRun
from prefect.states import Failed
from pydantic import SecretStr

from core.errors import SourceUnavailable
from core.settings import Settings
from crawlers.web.pacing import CircuitOpen
from tasks.prefect import sites
from tasks.prefect.retries import may_pass


def test_extras_are_asked_for_slots_and_tokens_if_there_is_a_server(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[str, int]] = []

    @contextmanager
    def hold_slot(host: str, tries: int) -> Iterator[None]:
        held.append((host, tries))
        yield
        held.clear()

    def add_block_tokens(keys: Iterable[str], settings: Settings) -> Settings:
        return settings.model_copy(update={"tokens": {key: SecretStr("t") for key in keys}})

    part = SimpleNamespace(hold_slot=hold_slot, add_block_tokens=add_block_tokens)
    monkeypatch.setattr(sites, "import_parts", lambda name: (part,))
    monkeypatch.setattr(sites, "prefect_server", lambda: None)
    with sites.take_slot("some.example", tries=3):
        assert held == []
    assert sites.with_tokens(["arxiv"], settings) == settings
    monkeypatch.setattr(sites, "prefect_server", lambda: "http://127.0.0.1:1/api")
    with sites.take_slot("some.example", tries=3):
        assert held == [("some.example", 3)]
    assert held == []
    assert sites.with_tokens(["arxiv"], settings).tokens == {"arxiv": SecretStr("t")}


@pytest.mark.parametrize(
    ("failure", "attempt", "expected"),
    [
        (SourceUnavailable("busy"), 2, True),
        (SourceUnavailable("busy"), 3, False),
        (CircuitOpen("refused"), 1, False),
        (KeyError("bug"), 1, False),
    ],
)
def test_what_the_task_tries_again(failure: Exception, attempt: int, expected: bool) -> None:
    run = TaskRun(task_key="crawl", dynamic_key="0", run_count=attempt)
    assert asyncio.run(may_pass(None, run, Failed(data=failure))) is expected
