"""`export model-index` and `export eval-results`: what the hub's own library reads again."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from pytest import approx

from core.errors import UsageError
from core.settings import Settings
from extras.exchange.hub_results import export_hub_results
from extras.exchange.model_figures import GAP, LEVEL, AllResults, ModelResult, ModelResults
from extras.exchange.model_index import export_model_index
from warehouse.read.query import query

DATA_SET = "org/dated-text"
MODEL = "org-1/Model_1.b"


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
def test_a_card_takes_the_index_of_each_of_twenty_models(twenty: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert export_model_index(twenty, folder) == 20
    models = _manifest(folder)["models"]
    assert len(models) == 20
    sql = "from train_test_gap where scope = 'source' and bits_per_byte_gap is not null"
    gaps = query(twenty, sql).to_pylist()
    levels = query(twenty, "from headline").to_pylist()
    for file, model in models.items():
        card = ModelCard(f"---\n{(folder / file).read_text(encoding='utf-8')}---\n")
        assert card.data.model_name == model
        results = card.data.eval_results
        assert results is not None
        found = {each.dataset_name: each for each in results}
        [level] = [row for row in levels if row["model"] == model]
        assert found["tidemark: all sources"].metric_value == approx(level["bits_per_byte"])
        own = [row for row in gaps if row["model"] == model]
        assert len(own) == (0 if model == "control:zstd" else 2)
        assert len(results) == 1 + len(own)
        for row in own:
            result = found[f"tidemark: {row['source']}"]
            assert result.metric_type == "bits_per_byte_gap"
            assert result.metric_value == approx(row["bits_per_byte_gap"])
            assert result.metric_args is not None
            assert result.metric_args["low"] == approx(row["bits_per_byte_gap_low"])
            assert result.metric_args["lower_is_better"] is True
            assert result.source_url == "https://figures.example.org"
            assert result.dataset_config is None
    before = _bytes(folder)
    export_model_index(twenty, folder)
    assert _bytes(folder) == before


@pytest.mark.long
def test_results_of_the_hub_s_models_fit_the_tasks_of_the_data_set(
    twenty: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert export_hub_results(twenty, folder, DATA_SET) == 19
    places = _manifest(folder)["places"]
    assert places.pop("eval.yaml") == "datasets/org/dated-text/eval.yaml"
    tasks = {
        task["id"]: task for task in yaml.safe_load((folder / "eval.yaml").read_text())["tasks"]
    }
    assert {task["split"] for task in tasks.values()} == {"train"}
    assert [task.get("config") for task in tasks.values()].count(None) == 1  # over all sources
    assert len(places) == 19
    for file in places:
        entries = parse_eval_result_entries(yaml.safe_load((folder / file).read_text()))
        assert {entry.task_id for entry in entries} == tasks.keys()
        assert {entry.dataset_id for entry in entries} == {DATA_SET}
        assert all("lower is better" in (entry.notes or "") for entry in entries)
    [file] = [file for file, place in places.items() if place.startswith(f"{MODEL}/")]
    assert places[file] == f"{MODEL}/.eval_results/tidemark.yaml"
    entries = parse_eval_result_entries(yaml.safe_load((folder / file).read_text()))
    [level] = query(twenty, f"from headline where model = '{MODEL}'").to_pylist()
    found = {entry.task_id: entry.value for entry in entries}
    assert found["bits_per_byte"] == approx(level["bits_per_byte"])
    before = _bytes(folder)
    export_hub_results(twenty, folder, DATA_SET)
    assert _bytes(folder) == before


@pytest.mark.parametrize("data_set", ["", "name", "a/b/c", "a b/c", "../x", "a/b\n"])
def test_what_is_no_data_set_is_refused(data_set: str, settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no data set of the hub; expected OWNER/NAME"):
        export_hub_results(settings, tmp_path / "out", data_set)
    with pytest.raises(UsageError, match="is no data set of the hub; expected OWNER/NAME"):
        export_model_index(settings, tmp_path / "out", data_set)


def _simulated(settings: Settings) -> AllResults:
    figures = tuple(
        ModelResult(metric, source, 0.5, None, {"protocol": "default"}, is_simulated=is_simulated)
        for metric, source, is_simulated in (
            (LEVEL, None, True), (GAP, "news", True), (GAP, "code", False),
        )
    )  # fmt: skip
    facts = {"kind": "causal_lm", "location": "org/one"}
    return AllResults(
        dt.datetime(2024, 5, 6, tzinfo=dt.UTC), (ModelResults("org/one", facts, figures),)
    )


def test_figures_on_simulated_text_are_marked_or_left_out(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result on a real model's page must not come from text that a program has made up."""
    for module in ("hub_results", "model_index"):
        monkeypatch.setattr(f"extras.exchange.{module}.read_model_figures", _simulated)
    export_model_index(settings, tmp_path / "index", DATA_SET)
    [index] = yaml.safe_load((tmp_path / "index" / "org_one_800a87da.yaml").read_text()).values()
    assert [result["dataset"]["name"] for result in index[0]["results"]] == [
        "tidemark: all sources (simulated text)", "tidemark: news (simulated text)",
        "tidemark: code",
    ]  # fmt: skip
    assert [result["dataset"].get("config") for result in index[0]["results"]] == [
        None, "news", "code",
    ]  # fmt: skip
    assert {result["dataset"]["type"] for result in index[0]["results"]} == {DATA_SET}
    assert export_hub_results(settings, tmp_path / "results", DATA_SET) == 1
    [file] = (tmp_path / "results").glob("results-*.yaml")
    entries = parse_eval_result_entries(yaml.safe_load(file.read_text()))
    assert [(entry.task_id, entry.date) for entry in entries] == [
        ("bits_per_byte_gap_code", "2024-05-06")
    ]


def test_results_belong_to_the_repository_of_the_weights(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models of the catalogue have short names; their locations are ids of the hub."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own" / "weights").mkdir(parents=True)
    locations = {
        "alone": "org/Alone", "first": "org/shared", "second": "org/shared",
        "folder": "own/weights", "path": "/own/weights", "page": "https://a.org/x",
        "<b>/x": "<b>/x",
    }  # fmt: skip

    def read(settings: Settings) -> AllResults:
        found = _simulated(settings)
        figures = found.models[0].figures
        models = [
            ModelResults(name, {"kind": "causal_lm", "location": location}, figures)
            for name, location in locations.items()
        ]
        return AllResults(found.at, tuple(models))

    monkeypatch.setattr("extras.exchange.hub_results.read_model_figures", read)
    assert export_hub_results(settings, tmp_path / "out", DATA_SET) == 3
    places = _manifest(tmp_path / "out")["places"]
    assert places.pop("eval.yaml") == f"datasets/{DATA_SET}/eval.yaml"
    assert places == {
        "results-alone.yaml": "org/Alone/.eval_results/tidemark.yaml",
        "results-first.yaml": "org/shared/.eval_results/tidemark-first.yaml",
        "results-second.yaml": "org/shared/.eval_results/tidemark-second.yaml",
    }


def test_without_a_model_of_the_hub_nothing_is_written(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(settings: Settings) -> AllResults:
        found = _simulated(settings)
        [model] = found.models
        return AllResults(found.at, (ModelResults("local", {}, model.figures),))

    monkeypatch.setattr("extras.exchange.hub_results.read_model_figures", read)
    with pytest.raises(UsageError, match="no model of the hub has a figure on real text"):
        export_hub_results(settings, tmp_path / "out", DATA_SET)
    assert not (tmp_path / "out").exists()
