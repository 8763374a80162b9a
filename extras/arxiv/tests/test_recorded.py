"""Recordings of arXiv, and LaTeX sources of published papers."""

from pathlib import Path

import pytest

from core.settings import Settings
from extras.arxiv.tests import recorded_arxiv, recorded_latex
from tests.crawlers.recorded import Case

CASES = [
    pytest.param(case, id=case.path, marks=[getattr(pytest.mark, case.mark)] if case.mark else [])
    for case in (*recorded_arxiv.CASES, *recorded_latex.CASES)
]


@pytest.mark.parametrize("case", CASES)
def test_a_recording_gives_what_it_should(case: Case, shared: Path, settings: Settings) -> None:
    path = shared / "recordings" / case.path
    if not path.exists():
        pytest.skip(f"no recording at {path}")
    case.check(path, settings)
