from collections.abc import Callable
from pathlib import Path

from core.settings import Settings
from extras.imported_results.answers import land_imported_answers

HEADER = "model,release_date,question_id,opened,closed,num_options,is_correct"


def lander(settings: Settings, folder: Path) -> Callable[..., int]:
    def land(rows: str, more: str = "", source: str = "s", replace: bool = False) -> int:
        path = folder / "answers.csv"
        path.write_text(f"{HEADER}{more}\n{rows}", encoding="utf-8")
        return land_imported_answers(settings, path, source, replace).num_changed

    return land
