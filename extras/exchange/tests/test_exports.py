"""The commands `export model-index`, `eval-results` and `dbt`."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from tests.losses import loss_row, publish_rows

Tidemark = Callable[..., Any]


@pytest.mark.long
def test_each_export_says_what_it_wrote(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    rows = [
        loss_row("org/one", "news", dt.date(2024, month, 1), f"{month}-{text}", nll_nats=9.0 + text)
        for month in range(1, 7)
        for text in range(2)
    ]
    publish_rows(
        Settings(home=str(home)), rows,
        {"name": "org/one", "kind": "causal_lm", "location": "org/one"},
    )  # fmt: skip
    out = tmp_path / "out"
    ran = tidemark("export", "model-index", "--output", out / "index").expect(0)
    assert f"figures of 1 models in {out}/index" in ran.out
    command = ("export", "eval-results", "--data-set", "org/dated-text")
    ran = tidemark(*command, "--output", out / "results").expect(0)
    assert f"results of 1 models in {out}/results" in ran.out
    ran = tidemark("export", "dbt", "--output", out / "dbt", "--database", "tide").expect(0)
    assert "database: tide" in (out / "dbt" / "sources.yml").read_text()
    assert f"views in {out}/dbt" in ran.out
    refused = tidemark("export", "dbt", "--output", out / "index")
    assert refused.code == 2 and "holds more than an earlier export of dbt" in refused.err
