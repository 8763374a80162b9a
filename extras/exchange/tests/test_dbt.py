"""`export dbt`: the public views with their columns, which dbt reads where it is installed."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from core.errors import UsageError
from core.settings import Settings
from extras.exchange.dbt import export_dbt
from reports.exports.figures import exported_views
from warehouse.database.schema import qualify

MODEL = "select model, bits_per_byte from {{ source('tidemark', 'headline') }}"
PROJECT = "{name: own, version: '1.0', profile: own, model-paths: [models]}"
PROFILE = """\
own:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: {own}
      attach: [{{path: {snapshot}, alias: warehouse, read_only: true}}]
"""


def _sources(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((folder / "sources.yml").read_text())["sources"]
    return found


@pytest.mark.long
def test_every_public_view_is_a_table_of_a_source(twenty: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert export_dbt(twenty, folder) == len(exported_views())
    sources = _sources(folder)
    names = ["tidemark", "tidemark_papers", "tidemark_tasks"]
    assert [source["name"] for source in sources] == names
    assert {source["database"] for source in sources} == {"warehouse"}
    named = {
        f"{source['schema']}.{table['name']}": table
        for source in sources
        for table in source["tables"]
    }
    assert named.keys() == {qualify(name) for name in exported_views()}
    with duckdb.connect(str(Path(twenty.home) / "warehouse.duckdb"), read_only=True) as database:
        for name in ("main.headline", "main.monthly_loss"):
            described = [(column["name"], column["data_type"]) for column in named[name]["columns"]]
            found = database.execute(f"describe {name}").fetchall()
            assert described == [(column, kind) for column, kind, *_ in found]
    means = {name for name, view in exported_views().items() if "scope" in view.columns}
    warned = {name for name, table in named.items() if "Select one scope" in table["description"]}
    assert warned == {qualify(name) for name in means} and means
    level = named["main.headline"]["columns"][1]
    assert level["description"].endswith("[bits per byte]")
    export_dbt(twenty, folder, "other")
    assert {source["database"] for source in _sources(folder)} == {"other"}


@pytest.mark.smoke
def test_without_a_snapshot_nothing_is_written(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is published"):
        export_dbt(settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("dbt"), reason="dbt is not installed: pip install dbt-duckdb")
def test_dbt_builds_a_model_upon_the_sources(twenty: Settings, tmp_path: Path) -> None:
    export_dbt(twenty, tmp_path / "models")
    snapshot = Path(twenty.home) / "warehouse.duckdb"
    own = tmp_path / "own.duckdb"
    (tmp_path / "models" / "levels.sql").write_text(MODEL)
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "profiles.yml").write_text(PROFILE.format(own=own, snapshot=snapshot))
    ran = subprocess.run(
        ["dbt", "--no-send-anonymous-usage-stats", "build", "--profiles-dir", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert "PASS=1" in ran.stdout
