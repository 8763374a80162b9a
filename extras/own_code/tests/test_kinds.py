"""Models that need trust score texts, answer questions and write."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from core.settings import Settings
from extras.own_code.tests.test_engines import OWN_MODEL
from models.catalogue import ModelEntry
from tests.models.conftest import llama_config
from tests.models.test_kinds import go_through_all_instruments, saved
from tests.models.weights.test_own_code import own_model, trusted


def own_code(folder: Path) -> ModelEntry:
    report = "def found(): return []\nimport os\n"
    return own_model(saved(folder, llama_config()), report + OWN_MODEL)


def pickled(folder: Path) -> ModelEntry:
    saved(folder, llama_config())
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return trusted(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("confinement")
@pytest.mark.parametrize("make", [own_code, pickled])
def test_a_model_goes_through_all_instruments(
    make: Callable[[Path], ModelEntry], tmp_path: Path, settings: Settings
) -> None:
    go_through_all_instruments(make(tmp_path / "model"), settings)
