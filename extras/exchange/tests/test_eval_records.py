"""`tidemark export eee`: records that their owner's schema accepts, with the views' figures."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from core.errors import UsageError
from core.month import Month, month_range
from core.settings import Settings
from extras.exchange.eval_records import _id_of, _place, export_eval_records
from extras.exchange.model_figures import ModelResults
from reports.exports.figures import export_figures, exported_views
from tests.losses import loss_row, publish_rows
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

SCHEMA = json.loads(
    (Path(__file__).parent / "every_eval_ever" / "eval.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture
def published(settings: Settings) -> Settings:
    """Two models and a compressor on 30 months; the first is worse after its cutoff."""
    rows = []
    for number, month in enumerate(month_range(Month("2022-01"), Month("2024-06"))):
        for model, level in (("org/one", 10.0), ("Org:Two", 12.0), ("control:zstd", 20.0)):
            for source in ("news", "code"):
                nats = level + (number % 3) / 10 + (3 if model == "org/one" and number > 11 else 0)
                rows += [
                    loss_row(
                        model, source, month.first_day, f"{month}-{text}", nll_nats=nats + text
                    )
                    for text in range(3)
                ]
    models = [
        {"name": name, "kind": "causal_lm", "location": name, "cutoff": Month(cutoff),
         "cutoff_provenance": "stated", "cutoff_precision": "month"}
        for name, cutoff in (("org/one", "2022-12"), ("Org:Two", "2022-06"))
    ]  # fmt: skip
    publish_rows(settings, rows, *models)
    return settings


def records(folder: Path) -> dict[str, Any]:
    files = (file for file in folder.glob("*.json") if file.name != "manifest.json")
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return {record["model_info"]["id"]: record for record in found}


@pytest.mark.long
def test_records_are_valid_and_have_the_figures_of_the_views(
    published: Settings, tmp_path: Path
) -> None:
    assert export_eval_records(published, tmp_path / "out") == 3
    found = records(tmp_path / "out")
    assert found.keys() == {"org/one", "Org:Two", "control:zstd"}
    for record in found.values():
        jsonschema.validate(record, SCHEMA, jsonschema.Draft7Validator)
    results = {each["evaluation_name"]: each for each in found["org/one"]["evaluation_results"]}
    [level] = query(published, "from headline where model = 'org/one'").to_pylist()
    shown = results["tidemark headline: all sources"]["score_details"]
    assert shown["score"] == level["bits_per_byte"]
    interval = shown["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (
        level["bits_per_byte_low"], level["bits_per_byte_high"],
    )  # fmt: skip
    assert shown["details"]["basis"] == "after 2022-12"
    gap = results["tidemark train_test_gap: news"]
    assert gap["score_details"]["score"] > 0
    assert gap["metric_config"]["min_score"] == "-Infinity"
    assert gap["source_data"]["additional_details"] == {"simulated": "false"}
    first = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    export_eval_records(published, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == first


@pytest.mark.long
def test_twenty_models_have_valid_records(twenty: Settings, tmp_path: Path) -> None:
    assert export_eval_records(twenty, tmp_path / "out") == 20
    found = records(tmp_path / "out")
    assert len(found) == 20
    for record in found.values():
        jsonschema.validate(record, SCHEMA, jsonschema.Draft7Validator)


@pytest.mark.long
def test_a_record_has_a_path_that_its_owner_s_validator_takes(
    published: Settings, tmp_path: Path
) -> None:
    export_eval_records(published, tmp_path / "out")
    places = json.loads((tmp_path / "out" / "manifest.json").read_text())["places"]
    assert places.keys() == {path.name for path in (tmp_path / "out").glob("*.json")} - {
        "manifest.json"
    }
    assert {folders(place) for place in places.values()} == {
        ("org", "one"), ("local", "Org_Two"), ("local", "control_zstd"),
    }  # fmt: skip
    found = records(tmp_path / "out")
    assert {each["model_info"]["developer"] for each in found.values()} == {"org", "local"}


def folders(place: str) -> tuple[str, str]:
    """Return developer and model of a path in the data store, whose last part is a UUID."""
    match = re.fullmatch(
        r"data/tidemark/([^/]+)/([^/]+)/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{21}\.json", place
    )
    assert match, place
    return match[1], match[2]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "own_id", "expected"),
    [
        ("org/Model-7.b", "org/Model-7.b", ("org", "Model-7.b")),
        ("a/b/c:d", "a/b/c:d", ("a", "b_c_d")),
        ("control:zstd", "control:zstd", ("local", "control_zstd")),
    ],
)
def test_a_plain_name_is_the_id(name: str, own_id: str, expected: tuple[str, str]) -> None:
    model = ModelResults(name, {"model": name}, ())
    assert _id_of(model) == own_id
    assert folders(_place(model, "x")) == expected


@pytest.mark.smoke
@pytest.mark.parametrize(
    "name",
    [
        "con", "..", "a/..", "a//b", "org/NUL.b", "data/x", "unknown", "ünï/Модель <b>", "x" * 200,
        "'; drop table models; --", "=cmd()|'/c calc'!A1", "ends.", " blank ", "/srv/model",
    ],
)  # fmt: skip
def test_a_name_that_is_no_folder_gets_an_id_that_is_one(name: str) -> None:
    model = ModelResults(name, {"model": name}, ())
    developer, folder = folders(_place(model, "x"))
    assert _id_of(model) == f"{developer}/{folder}"
    assert developer == "local"
    assert re.fullmatch(r"model_[a-z0-9_]{1,80}", folder)


@pytest.mark.slow
def test_every_view_of_twenty_models_is_a_file(twenty: Settings, tmp_path: Path) -> None:
    assert export_figures(twenty, "csv", tmp_path / "out") == len(exported_views())
    header, *rows = (tmp_path / "out" / "headline.csv").read_text().splitlines()
    assert header.startswith("model,bits_per_byte,")
    assert len(rows) == 20


def test_a_model_named_as_the_manifest_has_a_record(settings: Settings, tmp_path: Path) -> None:
    rows = [
        loss_row("manifest", "news", month.first_day, f"{month}-{text}", nll_nats=9.0 + text)
        for month in month_range(Month("2024-01"), Month("2024-06"))
        for text in range(2)
    ]
    publish_rows(settings, rows)
    assert export_eval_records(settings, tmp_path / "out") == 1
    assert records(tmp_path / "out").keys() == {"manifest"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["export"] == "eee"
    assert manifest["places"].keys() == {"record-manifest.json"}


def test_without_a_figure_nothing_is_written(settings: Settings, tmp_path: Path) -> None:
    with open_warehouse(settings):
        pass
    publish(settings)
    with pytest.raises(UsageError, match="no model has a figure"):
        export_eval_records(settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()
