"""Replay every recording of the real sites, as far as ``../shared/recordings`` is there."""

import importlib
import pkgutil
from pathlib import Path

import pytest

from core.settings import Settings
from tests.crawlers import recorded
from tests.crawlers.recorded import Case

_MODULES = [module.name for module in pkgutil.iter_modules(recorded.__path__)]
_CASES = [
    pytest.param(case, id=case.path, marks=[getattr(pytest.mark, case.mark)] if case.mark else [])
    for name in _MODULES
    for case in importlib.import_module(f"{recorded.__name__}.{name}").CASES
]


@pytest.mark.parametrize("case", _CASES)
def test_a_recording_gives_what_it_should(case: Case, shared: Path, settings: Settings) -> None:
    path = shared / "recordings" / case.path
    if not path.exists():
        pytest.skip(f"no recording at {path}")
    case.check(path, settings)
