import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.schemas.tables import LOSSES
from core.settings import Settings
from reports.site import build
from reports.site.build import write_site
from reports.site.pages import changes as changes_page
from tests.reports.curves import level, losses, step
from tests.reports.site.pages import read_pages
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

pytestmark = pytest.mark.long
RIGHT_TO_LEFT = "نموذج"


def _titles(settings: Settings) -> dict[str, list[str]]:
    root = Path(write_site(settings)).parent
    pages = read_pages(root)
    for page in pages.values():
        for file, _ in page.targets():
            assert file.exists(), (page.path, file)
    return {str(path.relative_to(root.resolve())): page.titles for path, page in pages.items()}


def test_an_empty_warehouse_gives_pages_that_say_what_to_do(
    empty: Settings, settings: Settings
) -> None:
    Path(settings.home).mkdir()
    shutil.copy(Path(empty.home) / "warehouse.duckdb", settings.home)
    titles = _titles(settings)
    assert {"index.html", "compare.html", "data.html", "forecasts.html"} <= set(titles)
    assert "tidemark run" in (Path(settings.home) / "report" / "index.html").read_text()


@pytest.mark.slow  # test_worlds.py has ranks of models
def test_one_month_has_a_ranking(publish_figures: Any) -> None:
    figures = {**level("a", "news", 1.0, 1), **level("b", "news", 2.0, 1)}
    titles = _titles(publish_figures(figures, {"a": "2023-11", "b": "2023-12"}))
    assert "a predicts this month best" in titles["index.html"]


@pytest.mark.slow
def test_only_compressors(publish_figures: Any) -> None:
    figures = {**level("control:xz", "news", 3.0), **level("control:zstd", "news", 3.1)}
    titles = _titles(publish_figures(figures))
    assert "No model is measured" in titles["index.html"]


@pytest.mark.slow
def test_models_that_are_not_on_the_board_are_compared(settings: Settings) -> None:
    figures = losses({**level("a", "news", 1.0), **level("b", "news", 2.0)}).to_pylist()
    other = [{**row, "protocol": "disjoint-32"} for row in figures]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(other, schema=LOSSES), "other")
    publish(settings)
    _titles(settings.model_copy(update={"protocol": "disjoint-32"}))
    assert 'data-other="b"' in (Path(settings.home) / "report" / "compare.html").read_text()


@pytest.mark.slow
def test_long_and_right_to_left_names(publish_figures: Any) -> None:
    names = ["x" * 300, RIGHT_TO_LEFT, "=cmd()", "'quoted' \\ \"x\""]
    figures = {key: value for name in names for key, value in level(name, "news", 1.0, 2).items()}
    settings = publish_figures(figures)
    titles = _titles(settings)
    assert len([path for path in titles if path.startswith("models/")]) == len(names)
    board = (Path(settings.home) / "report" / "figures" / "board.csv").read_text()
    assert "\n'=cmd()," in board


def test_months_held_back_are_told(
    usual: Settings, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "page_modules", lambda: [])  # the feed alone is read
    Path(settings.home).mkdir()
    shutil.copy(Path(usual.home) / "warehouse.duckdb", settings.home)
    root = Path(write_site(settings)).parent
    held = Path(settings.home) / "corpus/source=news/month=2024-09/held/manifest.json"
    held.parent.mkdir(parents=True)
    held.write_text("{}")
    write_site(settings)
    held.unlink()
    write_site(settings)
    texts = [item["title"] for item in json.loads((root / "changes.json").read_text())["items"]]
    assert texts[:2] == [
        "No longer held back: news/2024-09.",
        "Held back, since a check failed: news/2024-09.",
    ]


@pytest.mark.slow
def test_five_hundred_models(publish_figures: Any) -> None:
    figures = {k: v for n in range(500) for k, v in level(f"m{n}", "news", 1 + n / 999, 3).items()}
    settings = publish_figures(figures)
    titles = _titles(settings)
    assert len([path for path in titles if path.startswith("models/")]) == 500
    root = Path(settings.home) / "report"
    assets = sum((root / "assets" / name).stat().st_size for name in ("site.css", "site.js"))
    assert max(path.stat().st_size for path in root.rglob("*.html")) + assets <= 150_000


@pytest.mark.slow
def test_a_later_month_keeps_the_former_site(
    publish_figures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish_figures(step("a", "news", "2024-03", 1.0, 1.5, 7), {"a": "2024-03"})
    root = Path(write_site(first)).parent
    before = (root / "models" / "a.html").read_bytes()
    publish_figures({**step("a", "news", "2024-03", 1.0, 1.5), **level("b", "news", 2.0)})
    write_site(first)
    assert (root / "months" / "2024-07" / "models" / "a.html").read_bytes() == before
    for page in read_pages(root).values():
        assert all(file.exists() for file, _ in page.targets()), page.path
    changes = (root / "changes.html").read_text()
    assert "New on the board: b." in changes
    assert 'href="months/2024-07/index.html"' in changes
    assert "New on the board: b." in (root / "changes.atom").read_text()
    monkeypatch.setattr(build, "page_modules", lambda: [changes_page])
    write_site(first)  # nothing changed since
    assert (root / "changes.html").read_text().count("New on the board") == 1
