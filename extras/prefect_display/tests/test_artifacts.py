import json
from typing import Any

import pytest

from core.cells.losses import Cell
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from extras.prefect_display import artifacts


@pytest.mark.smoke
def test_a_table_that_does_not_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(artifacts, "create_table_artifact", lambda *a, **k: sent.append((a[0], k)))
    monkeypatch.setattr(artifacts, "_read_figures", lambda *_: {})
    settings = Settings(home="nowhere")
    month = Partition("news", Month("2024-01"))
    cells = [Cell("gpt2", "r", month, f"{n:064}", "default", "s") for n in range(1234)]
    for limit, num_shown in ((artifacts.MAX_BYTES, 300), (1000, None)):
        monkeypatch.setattr(artifacts, "MAX_BYTES", limit)
        artifacts.show_cells("gpt2", cells, settings)
        rows, said = sent.pop()
        assert len(rows) == num_shown or (num_shown is None and 0 < len(rows) < 300)
        assert len(json.dumps(rows)) <= limit + 2 * len(rows) + 2
        assert said["description"] == (
            f"1,234 cells of gpt2. {1234 - len(rows):,} more did not fit, and are not shown. "
            "All are in the warehouse: `tidemark sql 'from monthly_loss'`."
        )
