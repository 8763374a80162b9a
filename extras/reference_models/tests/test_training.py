import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from core import progress
from core.corpus.partition import Partition, Seal
from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from extras.reference_models.reference import Recipe
from extras.reference_models.training import train
from models.catalogue import REFERENCE_FILE, find_model
from tests.seals import seal_images

pytestmark = pytest.mark.usefixtures("corpus")

Sealer = Callable[..., Seal]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def corpus(seal: Sealer) -> None:
    for source, month in (
        ("a", "2024-01"), ("a", "2024-02"), ("a", "2024-03"), ("b", "2024-01"), ("c", None),
    ):  # fmt: skip
        seal(source, month)


def recipe(**changes: object) -> Recipe:
    small = {"name": "small", "cutoff": Month("2024-02"), "vocabulary_size": 300, "layers": 1}
    small |= {"hidden": 16, "heads": 2, "context": 32, "epochs": 1}
    return Recipe(**(small | changes))  # type: ignore[arg-type]


def learnt(folder: str) -> list[str]:
    record = json.loads((Path(folder) / REFERENCE_FILE).read_bytes())
    return [f"{part['source']} {part['month']}" for part in record["partitions"]]


def test_only_what_is_sealed_up_to_the_cutoff_is_learnt(settings: Settings) -> None:
    entry = train(recipe(), None, settings)
    assert learnt(entry.location) == ["a 2024-01", "a 2024-02", "b 2024-01"]
    assert (entry.cutoff, entry.cutoff_provenance) == (Month("2024-02"), "planted")
    assert Path(entry.location) == Path(settings.home) / "models" / "small"
    assert find_model("small", settings) == entry
    assert learnt(train(recipe(name="b"), ["b"], settings).location) == ["b 2024-01"]


def test_media_teach_nothing(settings: Settings, store: Store) -> None:
    seal_images(store, Partition("photos", Month("2024-01")))
    entry = train(recipe(), None, settings)
    assert learnt(entry.location) == ["a 2024-01", "a 2024-02", "b 2024-01"]
    with pytest.raises(UsageError, match="nothing is sealed of photos up to .* that is text"):
        train(recipe(), ["a", "photos"], settings)


def test_progress_is_reported_and_a_trained_model_is_used_again(settings: Settings) -> None:
    seen: list[tuple[str, int, int, int]] = []
    progress.listen(lambda *report: seen.append(report))
    try:
        entry = train(recipe(), None, settings)
        assert seen
        assert seen[-1] == ("train small", len(seen), len(seen), 0)
        seen.clear()
        assert train(recipe(), None, settings) == entry
        assert seen == []
    finally:
        progress.listen(None)


@pytest.mark.parametrize(
    ("sources", "cutoff", "says"),
    [
        (None, "2023-12", "nothing is sealed of any source up to 2023-12"),
        (["b", "d"], "2023-12", "nothing is sealed of b, d up to 2023-12"),
        (["c"], "2024-02", "nothing is sealed of c up to 2024-02"),
        (["d"], "2024-02", "nothing is sealed of d up to 2024-02"),
        (["a", "d"], "2024-02", "nothing is sealed of d up to 2024-02"),
    ],
)
def test_nothing_to_learn_from_is_refused(
    settings: Settings, sources: list[str] | None, cutoff: str, says: str
) -> None:
    with pytest.raises(UsageError, match=f"{says} under .*; crawl or import texts first"):
        train(recipe(cutoff=Month(cutoff)), sources, settings)
