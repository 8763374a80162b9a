"""A site with two simulated sources and a real one, made once by all processes of a run."""

import math
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, sync_playwright

from core.corpus.partition import Partition, document_id, tables_of
from core.corpus.sealing import seal_partition
from core.corpus.simulated import LICENCE
from core.month import month_range
from core.schemas.tables import LOSSES
from core.settings import Settings, load_settings
from core.storage.store import Store
from reports.site import build
from reports.site.pages import methods, overview, source
from tests.conftest import once, shared_folder
from tests.losses import loss_row
from tests.reports.curves import FIRST
from tests.reports.site.pages import pages_alone
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

LICENCES = {"arxiv": LICENCE, "govuk": LICENCE, "news": "CC0-1.0"}
TEXT = "sand and tide, " * 20
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


def _publish_home(home: Path) -> Settings:
    settings, store = Settings(home=str(home)), Store(str(home))
    rows = []
    with open_warehouse(settings) as warehouse:
        for name in LICENCES:
            for number, month in enumerate(month_range(FIRST, FIRST + 3)):
                partition = Partition(name, month)
                documents = [
                    {"native_id": f"{month}-{each}", "date_kind": "given", "text": TEXT,
                     "licence": LICENCES[name]}
                    for each in range(2)
                ]  # fmt: skip
                seal = seal_partition(store, partition, tables_of(documents, partition))
                warehouse.land_documents(seal)
                rows += [
                    loss_row(model, name, month.first_day,
                             document_id(name, str(each["native_id"]), None),
                             nll_nats=(level + number / 10) * math.log(2) * len(TEXT),
                             num_chars=len(TEXT), num_bytes=len(TEXT))
                    for each in documents
                    for model, level in (("early", 1.0), ("late", 1.5))
                ]  # fmt: skip
        warehouse.land_losses(pa.Table.from_pylist(rows, schema=LOSSES), "losses")
        warehouse.upsert_sources([{"name": name, "licence": "CC-BY-4.0"} for name in LICENCES])
    publish(settings)
    return settings


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Published figures of the three sources, with the pages of ``mixed_site``. Only read it."""
    home = shared_folder(tmp_path_factory) / "mixed"

    def make() -> None:
        settings = _publish_home(home)
        with pages_alone(overview, source, methods):
            build.write_site(settings)

    once(home, make)
    return Settings(home=str(home))


@pytest.fixture(scope="session")
def mixed_site(mixed: Settings) -> Path:
    """The first page, those of sources, and that of methods."""
    return Path(mixed.home) / "report"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = load_settings().chromium
    with sync_playwright() as playwright:
        path = chromium or Path(playwright.chromium.executable_path)
        if not path.exists():
            pytest.skip(f"no browser at {path} (see `make test`)")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
