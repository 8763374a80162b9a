import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from reports.site.build import write_site
from reports.site.pages import changes as changes_page
from reports.site.pages import compare, data, model, overview
from tests.reports.curves import level, losses, step
from tests.reports.site.pages import pages_alone, read_pages
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


def test_months_held_back_are_told(usual: Settings, settings: Settings) -> None:
    Path(settings.home).mkdir()
    shutil.copy(Path(usual.home) / "warehouse.duckdb", settings.home)
    with pages_alone():  # the feed alone is read
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
    publish_figures: Any,
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
    with pages_alone(changes_page):
        write_site(first)  # nothing changed since
    assert (root / "changes.html").read_text().count("New on the board") == 1


@pytest.fixture(scope="module")
def beaten(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return pages of a world whose compressors win, with one known cutoff of two."""
    settings = Settings(home=str(tmp_path_factory.mktemp("beaten")))
    figures = {
        **level("known", "news", 3.5, 12), **level("unknown", "news", 3.6, 12),
        **level("control:xz", "news", 3.1, 12), **level("control:zstd", "news", 3.0, 12),
    }  # fmt: skip
    cutoff = {"cutoff": Month("2024-03"), "cutoff_provenance": "inferred"}
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(figures), "planted")
        warehouse.upsert_models([{"name": "known", "kind": "causal_lm", **cutoff}])
    publish(settings)
    with pages_alone(overview, compare, model, data):
        root = Path(write_site(settings)).parent
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.html")}


def test_two_models_are_compared_rather_than_two_compressors(beaten: dict[str, str]) -> None:
    compare = beaten["compare.html"]
    assert (
        "<h2>known is better than unknown on these documents, maybe seen in training</h2>"
        in compare
    )
    assert "Over months that may have been seen in training, as a cutoff is unknown." in compare
    assert "known has a lower loss than unknown in 9 of 9 months of sources" in compare


def test_a_pair_without_a_p_value_says_why(beaten: dict[str, str]) -> None:
    compare = beaten["compare.html"]
    assert "No p-value: 3 blocks of three months; 4 are needed." in compare
    assert compare.count("3 blocks of three months; 4 are needed") == 1  # not in each row again


def test_months_of_a_comparison_are_told_in_words(beaten: dict[str, str]) -> None:
    for path, text in beaten.items():
        for wrong in ("months cutoff unknown", "months never trained", "Months: never"):
            assert wrong not in text, path
    assert "; 3.500 bits per byte of months after 2024-03<" in beaten["models/known.html"]
    assert "are over months after 2024-03. " in beaten["index.html"]


def test_the_reason_of_no_gap_is_that_of_the_models_with_a_cutoff(beaten: dict[str, str]) -> None:
    told = "No gap can be told yet: no other model with another known cutoff"
    assert told in beaten["index.html"]
    assert "No gap can be told yet: cutoff unknown" not in beaten["index.html"]


def test_months_of_several_sources_are_not_counted_as_calendar_months(
    beaten: dict[str, str],
) -> None:
    assert "Every month of 1 source has losses of every model: 12 in all" in beaten["data.html"]


def test_marks_that_a_picture_lacks_are_not_explained(beaten: dict[str, str]) -> None:
    assert "Dashed: the known cutoff." in beaten["index.html"]
    assert "Dashed: the inferred cutoff." in beaten["models/known.html"]
    assert "Dashed:" not in beaten["models/unknown.html"]
    assert not any("Band: the cutoff that the losses" in text for text in beaten.values())
