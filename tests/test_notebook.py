import ast
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.month import Month, month_range
from core.settings import Settings
from tests.losses import loss_row, publish_rows

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "notebooks" / "analysis.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot where the notebook expects the demo's: 1 bit a byte until May, 2 from June on."""
    settings = Settings(home=str(tmp_path / "tidemark-demo"))
    rows = [
        loss_row(
            "reference-2023-05",
            "news",
            month.first_day,
            f"{month} {number}",
            nll_nats=math.log(2) * 20 * (1 if month <= Month("2023-05") else 2),
        )  # fmt: skip
        for month in month_range(Month("2022-12"), Month("2023-11"))
        for number in range(3)
    ]
    model = {"name": "reference-2023-05", "kind": "reference", "cutoff": Month("2023-05"),
             "cutoff_provenance": "planted", "cutoff_precision": "month"}  # fmt: skip
    publish_rows(settings, rows, model)
    monkeypatch.chdir(tmp_path)


def test_the_notebook_runs(demo: None) -> None:
    import altair as alt  # most workers draw no charts

    names: dict[str, Any] = {}
    shown = [run_cell(code, names) for code in CODE]
    comments = shown[1]
    assert isinstance(comments, pl.DataFrame)
    assert comments["comment"].null_count() == 0
    assert names["by_month"]["bits_per_byte"].to_list() == pytest.approx([1.0] * 6 + [2.0] * 6)
    [gap] = names["gaps"].to_dicts()
    assert gap["bits_per_byte_gap"] == pytest.approx(1)
    assert gap["is_clear"]
    [chart] = [each for each in shown if isinstance(each, alt.Chart)]
    assert chart.to_dict()["encoding"]["x"]["field"] == "month"


def run_cell(code: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(code, names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_notebook_is_committed_without_outputs() -> None:
    assert all(not cell["outputs"] and cell["execution_count"] is None
               for cell in CELLS if cell["cell_type"] == "code")  # fmt: skip
