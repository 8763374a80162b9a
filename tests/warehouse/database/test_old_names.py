"""Former names of views: aliases in schema ``old``."""

from pathlib import Path

import duckdb
import pytest

from core.settings import Settings
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query


def test_former_names_find_their_views(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))
    with open_warehouse(settings):
        pass
    snapshot = publish(settings)
    view = query(settings, "from papers.corpus_rank")
    assert query(settings, "from corpus_rank") == view
    assert query(settings, "from old.corpus_rank") == view
    macro = query(settings, "from papers.benchmark_fit_at(date '2024-02-01')")
    assert query(settings, "from benchmark_fit_at(date '2024-02-01')") == macro
    with duckdb.connect(snapshot, read_only=True) as plain:
        assert plain.sql("from old.corpus_rank").columns == view.column_names
        with pytest.raises(duckdb.CatalogException, match=r"papers\.corpus_rank"):
            plain.sql("from corpus_rank")
