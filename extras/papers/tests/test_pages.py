import json
import re
from pathlib import Path

import duckdb
import pytest

from core.month import Month
from core.plugins import import_parts
from core.settings import Settings
from extras.papers.pages import counted_kinds
from reports.site.build import write_site
from tests.reports.curves import level, losses
from tests.tiers import needs_extra
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

MODELS = ("a", "b", "c", "d", "e")
SCORES = (50.0, 40.0, 30.0, 20.0, 10.0)
CHARTS = ("losses", "accuracy", "lengths", "genres", "groups", "ranks")
NAMES = [f"papers-{kind}" for kind in CHARTS]
TABLE = "papers-benchmarks"


def _questions(connection: duckdb.DuckDBPyConnection) -> None:
    """Plant questions of four quarters: model ``a`` is right most often, ``e`` least."""
    for number in range(40):
        opened = f"2024-{3 * (number % 4) + 1:02d}-15"
        connection.execute(
            "insert into forecast_questions (source, question_id, month, opened, num_options, "
            "answer_index, status, tags) values ('gjo', ?, '2025-01-01', ?, 2, 0, 'resolved', "
            "['Business'])", [str(number), opened],
        )  # fmt: skip
        for place, model in enumerate(MODELS):
            is_right = number // 4 >= place
            connection.execute(
                "insert into forecast_answers (model, source, question_id, protocol, chosen_index, "
                "is_parsed, is_correct) values (?, 'gjo', ?, 'letter', ?, true, ?)",
                [model, str(number), 0 if is_right else 1, is_right],
            )


def _milestones(connection: duckdb.DuckDBPyConnection) -> None:
    """Plant losses of the first 10 and 100 tokens, in opposite orders of models."""
    for place, model in enumerate(MODELS):
        connection.execute(
            "insert into cell_costs (model, revision, source, month, protocol, scored_at, device, "
            "dtype, versions, seconds, num_tokens_read, peak_memory_bytes, num_lossy_documents) "
            "values (?, 'r1', 'arxiv', '2024-02-01', 'default', '2025-01-01', 'cpu', 'float32', "
            "'{}', 1, 1, 1, 0)", [model],
        )  # fmt: skip
        for length, slope in ((10, -10), (100, 10)):
            connection.execute(
                "insert into cell_milestones (model, source, month, protocol, milestone, "
                "num_documents, nll_nats, num_bytes, num_chars) values (?, 'arxiv', "
                "'2024-02-01', 'default', ?, 4, ?, 400, 400)",
                [model, length, 300.0 + slope * place],
            )


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("home")
    settings = Settings(home=str(home))
    figures = {}
    for place, model in enumerate(MODELS):
        # On Wikipedia the order is the other way round, by more.
        figures |= level(model, "arxiv", 1.0 + 0.1 * place)
        figures |= level(model, "wikipedia_new", 3.0 - 0.4 * place)
    models = [
        {"name": model, "kind": "reference", "cutoff": Month("2023-12"),
         "cutoff_provenance": "planted", "cutoff_precision": "month"}
        for model in MODELS
    ]  # fmt: skip
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(figures), "planted")
        warehouse.upsert_models(models)
    with connected(settings) as connection:
        connection.executemany(
            "insert into internal.benchmark_scores (model, benchmark, score) values (?, 'MMLU', ?)",
            list(zip(MODELS, SCORES, strict=True)),
        )
        _questions(connection)
        for source, category in (("arxiv", "science"), ("wikipedia_new", "encyclopedia")):
            connection.execute(
                "update sources set category = ? where source = ?", [category, source]
            )
        _milestones(connection)
    publish(settings)
    return settings


@pytest.fixture(scope="module")
def site(published: Settings) -> Path:
    return Path(write_site(published)).parent


def rows_of(site: Path, name: str) -> list[dict[str, object]]:
    with duckdb.connect() as connection:
        found = connection.sql(f"from '{site}/figures/{name}.parquet'")
        return found.to_arrow_table().to_pylist()


@pytest.mark.smoke
def test_the_page_has_each_chart(published: Settings) -> None:
    page = Path(write_site(published, only="papers"))
    text = page.read_text(encoding="utf-8")
    for name in NAMES:
        assert f'id="{name}"' in text
        assert (page.parent / f"figures/{name}.svg").stat().st_size > 1000


@needs_extra("report_files")
def test_charts_for_papers_have_letters_of_one_size(published: Settings, tmp_path: Path) -> None:
    widths = []
    scales = set()
    [files] = import_parts("site_files")
    for name in files.write_figures(published, tmp_path, "papers", 170):
        svg = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        found = re.search(r' width="([\d.]+)mm" height="[\d.]+mm" viewBox="0 0 ([\d.]+) ', svg)
        assert found is not None
        widths.append(float(found[1]))
        scales.add(round(float(found[1]) / float(found[2]), 3))
    assert min(widths) < max(widths) == 170
    assert len(scales) == 1
    for name, scale in (
        ("losses", "bits per character"),
        ("accuracy", "adjusted score"),
        ("groups", "Spearman&#39;s correlation, smoothed"),
    ):
        svg = (tmp_path / f"papers-{name}.svg").read_text(encoding="utf-8")
        assert f">{scale}</text>" in svg.replace("'", "&#39;")
    days = {
        name: (tmp_path / f"papers-{name}.txt").read_text(encoding="utf-8").splitlines()[-1]
        for name in ("losses", "accuracy")
    }
    assert days["losses"] != days["accuracy"], "one says the months of texts, one of questions"


def test_compressors_are_not_counted_as_models() -> None:
    assert counted_kinds(["a", "b", "control:xz"]) == "2 models and 1 compressor"
    assert counted_kinds(["a"]) == "1 model"
    assert counted_kinds(["control:xz", "control:zstd"]) == "2 compressors"


def test_the_site_lists_the_page_and_its_charts(site: Path) -> None:
    listed = {each["name"]: each for each in json.loads((site / "figures.json").read_text())}
    drawn = {name for name in listed if name.startswith("papers-")}
    assert drawn == {*NAMES, TABLE}
    for name in drawn:
        assert listed[name]["page"] == f"papers.html#{name}"
    assert "As in the papers" in (site / "index.html").read_text()


def test_ranks_without_wikipedia_are_those_of_the_other_sources(site: Path) -> None:
    rows = rows_of(site, "papers-ranks")
    assert {(row["model"], row["rank"], row["rank_without"]) for row in rows} == {
        ("a", 5, 1), ("b", 4, 2), ("c", 3, 3), ("d", 2, 4), ("e", 1, 5),
    }  # fmt: skip


def test_heat_maps_have_the_correlations_with_scores(site: Path) -> None:
    by_length = {row["milestone"]: row for row in rows_of(site, "papers-lengths")}
    # The best model has the lowest loss of 100 tokens, and the highest of 10.
    assert by_length[100]["pearson"] == pytest.approx(-1)
    assert by_length[10]["pearson"] == pytest.approx(1)
    assert by_length[100]["num_models"] == 5
    by_genre = {row["category"]: row["pearson"] for row in rows_of(site, "papers-genres")}
    assert by_genre == {"science": pytest.approx(-1), "encyclopedia": pytest.approx(1)}


def test_the_board_goes_with_the_scores_where_both_have_one_order(site: Path) -> None:
    [row] = rows_of(site, TABLE)
    assert row["against"] == "MMLU"
    # Two sources of opposite orders: their mean ranks the models as Wikipedia does.
    assert row["pearson"] == pytest.approx(1)
    assert row["num_models"] == 5


def test_groups_of_questions_follow_the_planted_order(site: Path) -> None:
    rows = rows_of(site, "papers-groups")
    assert {row["benchmark"] for row in rows} == {"MMLU"}
    assert all(row["spearman"] == pytest.approx(1) for row in rows)
    assert "all" in {row["question_group"] for row in rows}


def test_smoothed_curves_are_means_of_three_months(site: Path) -> None:
    rows = [row for row in rows_of(site, "papers-losses") if row["source"] == "arxiv"]
    assert {row["model"] for row in rows} == set(MODELS)
    assert all(row["smoothed"] == pytest.approx(row["bits_per_char"]) for row in rows)


def test_without_figures_the_page_says_what_to_do(settings: Settings) -> None:
    with open_warehouse(settings) as warehouse:
        warehouse.upsert_models([])
    publish(settings)
    root = Path(write_site(settings)).parent
    assert "tidemark land benchmarks FILE" in (root / "papers.html").read_text()
