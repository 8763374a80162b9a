"""Documents that are read by git alone carry the simulator's licence, too."""

import pytest

from core.corpus.simulated import ATTRIBUTION, LICENCE
from core.settings import Settings
from core.storage.store import Store
from extras.github import github_projects
from simulator.server import serve_sites
from simulator.sites import github
from tests.crawlers.test_simulated import WORLD, origins


def test_documents_of_a_simulated_site_are_the_simulator_s(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = list(github.REPOSITORIES)[:1]
    monkeypatch.setattr(github_projects, "read_projects", lambda: projects)
    with serve_sites([github.Site(WORLD)]) as web:
        own = settings.model_copy(update={"sites": web.urls, "request_interval_s": 0.0})
        assert origins(store, own, "github_projects") == {(LICENCE, ATTRIBUTION)}
