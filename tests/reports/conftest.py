import functools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from core.month import Month
from core.settings import Settings
from reports.site.build import write_site
from tests.conftest import once, shared_folder
from tests.reports.curves import HOSTILE_MODEL, HOSTILE_SOURCE, Figures, level, losses, step
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish


def _publish(
    settings: Settings, figures: Figures, cutoffs: Mapping[str, str] | None = None
) -> Settings:
    models = [
        {"name": name, "kind": "reference", "cutoff": Month(cutoff),
         "cutoff_provenance": "planted", "cutoff_precision": "month"}
        for name, cutoff in (cutoffs or {}).items()
    ]  # fmt: skip
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(figures), "figures")
        warehouse.upsert_models(models)
    publish(settings)
    return settings


@pytest.fixture
def publish_figures(settings: Settings) -> Callable[..., Settings]:
    return functools.partial(_publish, settings)


@pytest.fixture(scope="session")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Published figures, made once by all processes of the run. Do not publish there."""
    figures = {
        **step("early", HOSTILE_SOURCE, "2024-04", 1.0, 1.5),
        **step("early", "code", "2024-04", 2.0, 2.2),
        **step(HOSTILE_MODEL, HOSTILE_SOURCE, "2024-05", 0.9, 1.2),
        **step(HOSTILE_MODEL, "code", "2024-05", 0.8, 0.9),
        **level("unknown", HOSTILE_SOURCE, 1.1),
        **level("control:zstd", HOSTILE_SOURCE, 3.0),
        **level("control:zstd", "code", 4.0),
    }
    home = shared_folder(tmp_path_factory) / "usual"
    settings = Settings(home=str(home))
    cutoffs = {"early": "2024-04", HOSTILE_MODEL: "2024-05"}
    once(home, lambda: _publish(settings, figures, cutoffs))
    return settings


@pytest.fixture(scope="session")
def root(usual: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site of the usual figures, made once by all processes of the run. Only read it."""
    home = shared_folder(tmp_path_factory) / "usual-site"

    def write() -> None:
        shutil.copytree(usual.home, home, ignore=shutil.ignore_patterns("report"))
        write_site(Settings(home=str(home)))

    once(home, write)
    return home / "report"
