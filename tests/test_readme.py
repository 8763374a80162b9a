"""README's table: its figures agree with each other, and with those of the demo."""

import re
from collections.abc import Callable, Iterator
from statistics import mean

import pytest

from benchmarks.verify_demo import README, TABLE
from benchmarks.write_guide import line_differences
from core.settings import Settings
from tests.commands import *  # noqa: F403
from tests.commands import Ran

PRINTED = README.read_text("utf-8").partition(TABLE)[2].partition("\ndatabase")[0]
NUMBER = r"([+-]?\d\.\d{3})"
SPLIT = re.compile(rf" {NUMBER} +{NUMBER} +{NUMBER} +{NUMBER} … {NUMBER} +{NUMBER}")
INTERVAL = re.compile(rf" {NUMBER} +│ {NUMBER} … {NUMBER} +│")
ROUNDED = 0.00101  # of figures with three decimals


def faults(table: str) -> Iterator[str]:
    """Yield the lines whose figures do not agree with each other, and models unlike their sources.

    A gap is after less before, and in the middle of its interval. A model's figures are means.
    """
    model = ""
    rows: dict[str, list[list[float]]] = {}
    for line in table.splitlines():
        triples = [[*map(float, found)] for found in INTERVAL.findall(line)]
        split = SPLIT.search(line)
        if split:
            before, after, gap, low, high, slope = map(float, split.groups())
            triples += [[gap, low, high], [gap, after - before, after - before]]
            model = line.split()[0] if line.startswith(" reference") else model
            rows.setdefault(model, []).append([before, after, gap, slope])
        if any(abs((low + high) / 2 - figure) > ROUNDED for figure, low, high in triples):
            yield line
        if line.startswith(" control"):
            model = "control"
    for name in ("reference-2023-08", "reference-2024-01"):
        own, *sources = rows[name][:5]
        means = [mean(column) for column in zip(*sources, strict=True)]
        if any(abs(one - other) > ROUNDED for one, other in zip(own, means, strict=True)):
            yield name


def test_figures_agree_with_each_other() -> None:
    assert len(SPLIT.findall(PRINTED)) == 16 and len(INTERVAL.findall(PRINTED)) == 5
    assert list(faults(PRINTED)) == []


def test_a_wrong_digit_is_found() -> None:
    lines = [line for line in PRINTED.splitlines() if " … " in line]
    for line in lines:
        for place in (found.end() - 2 for found in re.finditer(NUMBER, line)):
            is_of_compressor = "control" in line or line.startswith("        ")
            if is_of_compressor and place > line.index(" … ") + 10:
                continue  # its slope
            wrong = line[:place] + str((int(line[place]) + 5) % 10) + line[place + 1 :]
            assert list(faults(PRINTED.replace(line, wrong))), wrong


@pytest.mark.slow
def test_the_demo_prints_the_table(tidemark: Callable[..., Ran], demo: Settings) -> None:
    """A complete demo prints its table again."""
    found = tidemark("demo", "--home", demo.home).expect(0).out
    found = found.partition(TABLE)[2].partition("\ndatabase")[0]
    assert list(line_differences(PRINTED, found)) == []
