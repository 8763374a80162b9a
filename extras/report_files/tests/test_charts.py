"""Charts for papers, and the small database."""

import re
import struct
from pathlib import Path

import duckdb
import pytest

from core.errors import UsageError
from core.settings import Settings
from extras.report_files.charts import write_figures
from extras.report_files.small_database import write_small_database
from tests.reports.curves import HOSTILE_SOURCE

pytestmark = pytest.mark.long


@pytest.mark.smoke
def test_charts_for_papers_have_the_stated_width(usual: Settings, tmp_path: Path) -> None:
    assert write_figures(usual, tmp_path, "index", 85) == ["over-time"]
    assert ' width="85.00mm" ' in (tmp_path / "over-time.svg").read_text()
    width, _ = struct.unpack(">II", (tmp_path / "over-time.png").read_bytes()[16:24])
    assert abs(width - 85 / 25.4 * 300) <= 1
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", (tmp_path / "over-time.pdf").read_bytes())
    assert box is not None
    assert abs(float(box[1]) - 85 / 25.4 * 72) <= 0.01
    title, *_, origin = (tmp_path / "over-time.txt").read_text("utf-8").splitlines()
    assert title.endswith(".") and len(title) > 20
    assert re.fullmatch(
        r"20\d\d-\d\d-01 to before 20\d\d-\d\d-01 · (tidemark |https?://).*", origin
    )
    with pytest.raises(UsageError, match="has no chart"):
        write_figures(usual, tmp_path, "changes", 85)


def test_charts_for_papers_have_the_watermark(mixed: Settings, tmp_path: Path) -> None:
    for name in write_figures(mixed, tmp_path, "index", 170):
        assert ">SIMULATED</text>" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        caption = (tmp_path / f"{name}.txt").read_text(encoding="utf-8")
        assert caption.splitlines()[-1].startswith("SIMULATED text · ")


@pytest.mark.slow
def test_the_small_database_has_the_rows_of_views(usual: Settings) -> None:
    with duckdb.connect(write_small_database(usual), read_only=True) as small:
        rows = small.sql("from monthly_loss").fetchall()
        explained = [len(small.sql(f"from {name}")) for name in ("start_here", "dictionary")]
    with duckdb.connect(f"{usual.home}/warehouse.duckdb", read_only=True) as published:
        assert sorted(rows, key=repr) == sorted(
            published.sql("from monthly_loss").fetchall(), key=repr
        )
    assert any(HOSTILE_SOURCE in row for row in rows)
    assert min(explained) > 0
