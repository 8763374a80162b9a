import io
import math
from itertools import product

import pytest
from rich.console import Console

from cli import run
from core.month import Month
from core.settings import Settings
from tests.losses import loss_row, publish_rows
from tests.tiers import few

MODEL = "[bold]reference[/]"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Publish a step from 1 to 1.5 bits per byte after 2024-06, and a control that stays at 3."""
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    rows = []
    for model, before, after in ((MODEL, 1.0, 1.5), ("control:zstd", 3.0, 3.0)):
        for source in ("news", "wikipedia_monitored"):
            for number, part in product(range(12), range(12)):  # one cluster has no interval
                bits_per_byte = before if number < 6 else after
                month = (Month("2024-01") + number).first_day
                figures = {"nll_nats": bits_per_byte * math.log(2) * 1000, "num_bytes": 1000}
                rows.append(loss_row(model, source, month, f"d{number}-{part}", **figures))
    model = {"name": MODEL, "cutoff": Month("2024-06"), "cutoff_provenance": "planted"}
    publish_rows(settings, rows, model)
    return settings


def printed(settings: Settings, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    file = io.StringIO()
    monkeypatch.setattr(run, "out", Console(file=file, width=width))
    run.print_gaps(settings)
    return file.getvalue().splitlines()


@pytest.mark.long
@pytest.mark.parametrize("width", few([100, 120], 1))
def test_each_line_of_the_table_is_one_line(
    published: Settings, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(published, width, monkeypatch)
    assert all(len(line.rstrip()) <= width for line in lines)
    gap = "+0.500  +0.500 … +0.500  +0.755"
    zero = "+0.000  +0.000 … +0.000  +0.000"
    assert [" ".join(line.split()) for line in lines[5:10]] == [
        " ".join(line.split())
        for line in (
            f"{MODEL} 1.000 1.500 {gap} 2024-06 2024-06",
            f"news 1.000 1.500 {gap}",
            f"wikipedia_monitored 1.000 1.500 {gap}",
            f"control:zstd 3.000 3.000 {zero} – (2024-06)",
            "",
        )
    ]


@pytest.mark.long
def test_a_narrow_terminal_loses_no_figure(
    published: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(printed(published, 80, monkeypatch))
    for figure in ("1.000", "1.500", "+0.500", "+0.755", "(2024-06)"):
        assert figure in text
