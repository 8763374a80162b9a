from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import models.servers.rounds
from core.settings import Settings
from core.storage.store import Store
from models.api import ApiAnswerer, ApiGenerator, connect, load_api_generator
from models.catalogue import ModelEntry
from models.servers.budget import AnswerCache, Budget, Spending
from simulator.faults import Fault, FaultKind
from simulator.server import Web, serve_sites
from simulator.sites.openai_api import KEY, MODEL, Site

PRICES = {"dollars_per_million_input_tokens": 2.5, "dollars_per_million_output_tokens": 10.0}


@dataclass
class Api:
    site: Site
    web: Web
    store: Store
    settings: Settings

    def entry(self, **fields: Any) -> ModelEntry:
        given: dict[str, Any] = {
            "name": "sim",
            "kind": "api",
            "location": f"{self.web.urls['openai_api']}/v1",
            "served_name": MODEL,
            "api_key": "sim",
        }
        return ModelEntry(**(given | fields))

    def answerer(self, budget: Budget | None = None, **fields: Any) -> ApiAnswerer:
        entry = self.entry(**({"max_output_tokens": 16} | PRICES | fields))
        rounds = connect(entry, self.settings, budget or Budget(), self.store)
        return ApiAnswerer(entry, rounds)

    def generator(self, budget: Budget | None = None, **fields: Any) -> ApiGenerator:
        return load_api_generator(self.entry(**fields), self.settings, budget or Budget())

    def spending(self) -> Spending:
        return AnswerCache(self.store, self.entry(**PRICES)).spending()

    @property
    def num_kept(self) -> int:
        return len(self.store.list("answer-cache/*/answers/*/*.json"))

    @property
    def num_notes(self) -> int:
        return len(self.store.list("answer-cache/*/sent/*.json"))

    def one_at_a_time(self) -> None:
        self.settings = self.settings.model_copy(update={"api_in_flight": 1})

    def fail(self, kind: FaultKind, times: int = 1, **fields: Any) -> None:
        self.web.faults.append(Fault(kind, "openai_api", times=times, **fields))


def settings_with(key: str, **fields: Any) -> Settings:
    return Settings(api_keys={"sim": SecretStr(key)}, **fields)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with serve_sites([site := Site()]) as web:
        settings = settings_with(KEY, home=str(tmp_path / "home"))
        yield Api(site, web, Store(settings.home), settings)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.servers.rounds, "_PAUSE_S", 0.01)
    monkeypatch.setattr("core.storage.claims.LOOK_S", 0.1)
