"""A model's page says where its gap sits, and links its worst documents."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from core.cells.losses import Cell
from core.cells.record import ByteClass
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from reports.site.build import write_site
from reports.site.figure import Column, cell
from tests.reports.curves import losses, step
from tests.warehouse.cells import RECORD, land_scored
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

CUTOFF = "2024-07"
URL = 'https://news.example/"storm"'


@pytest.fixture
def home(settings: Settings) -> Iterator[Settings]:
    table = losses(step("a", "news", CUTOFF, 1.0, 2.0, months=14))
    store = Store(settings.home)
    with open_warehouse(settings) as warehouse:
        for day in table["month"].unique().to_pylist():
            own = table.filter(pc.equal(table["month"], pa.scalar(day)))
            month = Month.of(day)
            names = 300.0 if month > Month(CUTOFF) else 100.0 + month.first_day.month
            classes = (
                ByteClass(byte_class="names", nll_nats=names, num_bytes=100),
                ByteClass(byte_class="words", nll_nats=300.0, num_bytes=300),
            )
            key = Cell("a", "r1", Partition("news", month), "digest", "default", "scoring")
            record = RECORD.model_copy(update={"byte_classes": classes, "milestones": ()})
            store.write_bytes(key.record_path, record.to_json())
            land_scored(warehouse, store, key, own)
        facts = {"cutoff": Month(CUTOFF), "cutoff_provenance": "planted"}
        warehouse.upsert_models([{"name": "a", "kind": "reference", **facts}])
    with connected(settings) as connection:
        connection.execute(
            "insert into documents by name select document_id, source, month, 'CC0-1.0' as "
            "licence, num_chars, num_bytes, 'A storm' as title, ? as url from chunk_losses "
            "where month = (select max(month) from chunk_losses)",
            [URL],
        )
        connection.execute(
            "insert into internal.landed_partitions by name select source, month, 'digest' as "
            "partition_digest, 1 as partition_version, count(*) as num_documents, "
            "sum(num_bytes) as num_bytes from documents group by source, month"
        )
    publish(settings)
    yield settings


@pytest.mark.long
def test_the_page_says_where_the_gap_sits(home: Settings) -> None:
    write_site(home, "models/a")
    page = (Path(home.home) / "report" / "models" / "a.html").read_text()
    assert "100 % of the plain gap (100 to 100 %) is in capitalised words" in page
    assert "The documents of the last months that the model predicts worst" in page
    link = '<a href="https://news.example/&#34;storm&#34;" rel="nofollow noreferrer">A storm</a>'
    assert link in page


def test_only_addresses_of_the_web_lead_to_other_sites() -> None:
    column = Column("name", "name", link=lambda row: row["address"])
    assert cell({"name": "n", "address": "https://a.example"}, column).is_external
    assert not cell({"name": "n", "address": "sources/a.html"}, column).is_external
    assert not cell({"name": "n", "address": None}, column).is_external
