"""Papers as a person marked them: the text is what a reader sees, and nothing else."""

from pathlib import Path

import pytest

from extras.arxiv.latex.reader import read_latex
from extras.arxiv.latex.source import decode
from tests.crawlers.conftest import marked, token_f1


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("raw", "right"),
    [
        pytest.param(*pair, id=pair[0].name)
        for pair in marked("arxiv", Path(__file__).parent / "marked")
    ],
)
def test_the_text_is_what_a_reader_sees(raw: Path, right: str) -> None:
    found = read_latex({raw.name: decode(raw.read_bytes())}).text
    assert token_f1(found, right) >= 0.95
