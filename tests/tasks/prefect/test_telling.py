from types import SimpleNamespace

import pytest

from tasks.prefect import telling


def test_extras_are_told_if_there_is_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, int]] = []
    part = SimpleNamespace(landed=lambda model, cells: heard.append((model, cells)))
    monkeypatch.setattr(telling, "import_parts", lambda name: (part,))
    monkeypatch.setattr(telling, "prefect_server", lambda: None)
    telling.tell("landed", "gpt2", 1)
    monkeypatch.setattr(telling, "prefect_server", lambda: "http://127.0.0.1:1/api")
    telling.tell("landed", "gpt2", 2)
    assert heard == [("gpt2", 2)]
