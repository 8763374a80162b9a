import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.cells.losses import list_losses
from core.corpus.partition import Seal
from core.settings import Settings
from core.storage.store import Store
from instruments.driver import work
from instruments.landing import land_losses
from instruments.losses import score_and_land, scoring_request
from instruments.written import find_unlanded
from models.catalogue import ModelEntry, add_model
from warehouse.database.lock import is_writer

MODEL = "control:gzip"


@pytest.fixture
def machines(home: Path, tmp_path: Path, seal: Callable[..., Seal]) -> tuple[Settings, Settings]:
    for month in ("2024-01", "2024-02"):
        seal("notes", month, num=5)
    gpu, rest = (
        Settings(home=str(home), work_dir=tmp_path / name, device="cpu") for name in ("gpu", "rest")
    )
    return gpu, rest


def score(model: str, settings: Settings) -> None:
    request = scoring_request([model], None, None, ["default"], settings)
    assert work(request, settings).failures == []


def land(settings: Settings) -> int:
    written = find_unlanded([], settings)
    assert written.problems == []
    return sum(len(land_losses(entry, cells, settings)) for entry, cells in written.cells)


def test_what_was_scored_elsewhere_lands_without_the_models_files(
    machines: tuple[Settings, Settings],
    home: Path,
    tiny_model: Path,
    dump: Callable[..., Any],
    tmp_path: Path,
) -> None:
    gpu, rest = machines
    location = tmp_path / "model"
    shutil.copytree(tiny_model, location)
    add_model(ModelEntry(name="tiny", location=str(location)), gpu)
    alone = Settings(home=str(tmp_path / "alone"), device="cpu")
    shutil.copytree(home, tmp_path / "alone")
    assert score_and_land(alone, ["tiny"], None, None, ["default"]) == (2, [])

    score("tiny", gpu)
    assert not is_writer(gpu)  # or the other machine would be refused
    shutil.rmtree(location)
    assert land(rest) == 2
    assert land(rest) == 0
    assert is_writer(rest)
    assert dump(work_dir=rest.work_dir) == dump(tmp_path / "alone")


def test_cells_of_a_former_scorer_or_text_are_left(
    machines: tuple[Settings, Settings], store: Store, seal: Callable[..., Seal]
) -> None:
    settings = Settings(home=store.root, device="cpu")
    score(MODEL, settings)
    first, second = sorted(list_losses(store, MODEL))
    seal("notes", "2024-02", num=6)  # a new version of the text
    former = f"{first.rpartition('-')[0]}-000000000000.parquet"
    path = Path(store.url(first))
    shutil.copy(path, path.with_name(Path(former).name))
    path.touch()  # the last computed
    [(entry, cells)] = find_unlanded([], settings).cells
    assert (entry.name, [cell.path for cell in cells]) == (MODEL, [first])


def test_a_damaged_file_costs_its_own_cell(
    machines: tuple[Settings, Settings], store: Store
) -> None:
    settings = Settings(home=store.root, device="cpu")
    score(MODEL, settings)
    first, second = sorted(list_losses(store, MODEL))
    Path(store.url(first)).write_bytes(b"no Parquet")
    written = find_unlanded([], settings)
    [problem] = written.problems
    assert problem.startswith(f"{first}: ")
    [(_, cells)] = written.cells
    assert [cell.path for cell in cells] == [second]


def test_a_damaged_manifest_costs_its_month_alone(
    machines: tuple[Settings, Settings], store: Store
) -> None:
    settings = Settings(home=store.root, device="cpu")
    score(MODEL, settings)
    first, _ = sorted(list_losses(store, MODEL))
    store.write_bytes("corpus/source=notes/month=2024-02/manifest.json", b"{")
    written = find_unlanded([], settings)
    [(_, cells)] = written.cells
    assert [cell.path for cell in cells] == [first]
    [problem] = written.problems
    assert "source=notes/month=2024-02/manifest.json is not a manifest" in problem
