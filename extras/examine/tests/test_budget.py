import json
import shutil
from pathlib import Path

import pytest

from core.settings import Settings
from extras.examine.budget import find_companions
from extras.examine.examination import failures_of
from models.catalogue import ModelEntry, add_model, find_model


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=str(home))


def test_a_copy_of_the_model_is_no_companion(
    tiny_model: Path, tmp_path: Path, settings: Settings
) -> None:
    """It has the same losses, so that nothing would be left of a change at the cutoff."""
    shutil.copytree(tiny_model, tmp_path / "copy")
    other = shutil.copytree(tiny_model, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 0.01}))
    (tmp_path / "broken").mkdir()
    for name in ("copy", "other", "broken"):
        entry = ModelEntry(name=name, kind="causal_lm", location=str(tmp_path / name))
        add_model(entry, settings)
    mine = find_model(str(tiny_model), settings)
    found = find_companions(mine, None, settings, 9)
    assert {each.name for each in found} == {"broken", "other"}


def test_failures_of_a_companion_are_not_those_of_the_model() -> None:
    mine = ["her on news 2024-01 under default: no", "her: no", "land her: no"]
    others = ["her-2 on news 2024-01 under default: no", "her.b: no", "land her-2: no"]
    assert failures_of([*others, *mine], ("her",)) == mine
