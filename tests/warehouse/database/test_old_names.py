"""Former names of views: aliases in schema ``old``."""

import duckdb
import pytest

from core.settings import Settings
from warehouse.database.schema import SNAPSHOT
from warehouse.read.query import query


@pytest.mark.long
def test_former_names_find_their_views(empty: Settings) -> None:
    view = query(empty, "from papers.corpus_rank")
    assert query(empty, "from corpus_rank") == view
    assert query(empty, "from old.corpus_rank") == view
    macro = query(empty, "from papers.benchmark_fit_at(date '2024-02-01')")
    assert query(empty, "from benchmark_fit_at(date '2024-02-01')") == macro
    with duckdb.connect(f"{empty.home}/{SNAPSHOT}", read_only=True) as plain:
        assert plain.sql("from old.corpus_rank").columns == view.column_names
        with pytest.raises(duckdb.CatalogException, match=r"papers\.corpus_rank"):
            plain.sql("from corpus_rank")
