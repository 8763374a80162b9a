"""What the tests of foreign answers share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.settings import Settings
from warehouse.foreign_answers import land_foreign_answers

HEADER = "model,release_date,question_id,opened,closed,num_options,is_correct"
MORE = ",probabilities,chosen_option,correct_option,p_correct,tags"


def lander(settings: Settings, folder: Path) -> Callable[..., int]:
    """Return what lands a text under HEADER, and says how many rows changed."""

    def land(rows: str, more: str = "", source: str = "s", replace: bool = False) -> int:
        path = folder / "answers.csv"
        path.write_text(f"{HEADER}{more}\n{rows}", encoding="utf-8")
        return land_foreign_answers(settings, path, source, replace).num_changed

    return land
