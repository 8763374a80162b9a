"""docs/walkthrough.md: its commands, on the texts that it names, and the figures of the compressor.

The model's figures need minutes of training: `python -m benchmarks.verify_demo --walkthrough HOME`
compares them with the data root in which the commands ran.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.write_guide import WALKTHROUGH, answer, line_differences
from core.settings import Settings

IMPORTS = re.compile(r"^import (\w+) (\d+to\d+) (\w+) (\d{4}-\d\d)$", re.MULTILINE)
CONTROL = "control:zstd"


@pytest.mark.slow
def test_the_figures_of_the_compressor_are_those_of_the_page(
    tidemark: Callable[..., Any], home: Path, shared: Path
) -> None:
    page = WALKTHROUGH.read_text("utf-8")
    imports = IMPORTS.findall(page)
    assert len(imports) == 12
    for name, dates, source, month in imports:
        file = shared / "data" / "texts" / f"{name}_{dates}.json"
        ran = tidemark("import", "texts", file, "--source", source, "--month", month)
        assert ran.out.endswith("160 documents\n"), ran.err
    assert tidemark("score", "--model", CONTROL).code == 0
    [(sql, printed)] = re.findall(r"```sql\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    found = answer(sql, Settings(home=str(home)))
    header, *lines = printed.splitlines()
    of_control = [line for line in lines if line.startswith(CONTROL)]
    assert len(of_control) == 2
    assert list(line_differences("\n".join([header, *of_control]), found)) == []
