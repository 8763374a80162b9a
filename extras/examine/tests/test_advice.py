import datetime as dt
from typing import Any

import pytest

from core.month import Month, month_range
from extras.examine.advice import (
    BLOCKS_OF_A_GAP,
    MONTHS_OF_A_SIDE,
    command_for_text,
    limits,
    next_steps,
)
from extras.examine.findings import Findings

YEAR = list(month_range(Month("2023-01"), Month("2023-12")))


@pytest.mark.smoke
def test_limits_name_what_is_missing_and_the_command() -> None:
    assert limits(YEAR, Month("2023-06"), 1) == []
    cutoff, gap, panel = limits(YEAR[:6], Month("2023-03"), 1)
    assert gap == (
        "gap: no interval of 3 months up to the cutoff and 3 after it; six on each side are enough"
    )
    assert panel.endswith("text of 2 quarters of a year here, 4 are needed")
    assert cutoff.startswith("cutoff: 6 months here, 8 are needed; `tidemark crawl --source git_")
    [gap] = limits(YEAR, None, 1)
    assert gap.startswith("gap: it needs the cutoff that the maker states")
    for outside in ("2022-12", "2023-12"):  # no month up to it, no month after it
        [gap] = limits(YEAR, Month(outside), 1)
        assert gap.startswith(f"gap: it needs months up to the cutoff {outside} and after it")
    [gap] = limits(YEAR, Month("2023-02"), 1)
    assert gap.startswith("gap: no interval of 2 months up to the cutoff and 10 after it")
    cutoff, gap, panel = limits(YEAR[:2], Month("2023-01"), 1)
    assert cutoff.startswith("cutoff: 2 months here, 8 are needed")
    assert gap.startswith("gap: no interval of 1 month up to the cutoff and 1 after it")
    assert "text of 1 quarter of a year here" in panel
    [other] = limits(YEAR, Month("2023-06"), 0)
    assert "no other language model is on this machine" in other


def test_the_command_names_sources_that_need_no_token() -> None:
    command = command_for_text(Month("2024-01"), Month("2024-02"))
    assert command.endswith(" --from 2024-01 --to 2024-02")
    assert command.count("--source git_posts:") == 4


def findings(cutoff: dict[str, Any] | None) -> Findings:
    return Findings(cutoff, None, None, None, None)


def test_every_answer_has_a_next_step_unless_all_is_told() -> None:
    told = {"estimated_cutoff": dt.date(2023, 6, 1), "is_at_edge": False}
    assert next_steps(findings(told), Month("2023-06"), 10) == []
    [step] = next_steps(findings(told), None, 10)
    assert "2023-06 is found on this text" in step
    [step] = next_steps(findings({"estimated_cutoff": None, "is_at_edge": True}), None, 10)
    assert "crawl months beyond it" in step
    for nothing in (None, {"estimated_cutoff": None, "is_at_edge": None}):
        [step] = next_steps(findings(nothing), None, 10)
        assert "--minutes 20" in step
        [step] = next_steps(findings(nothing), None, 0.5, planning_minutes=137 / 60)
        assert "--minutes 10;" in step  # not 1: the plan alone took more than two


def test_the_advice_asks_for_the_minima_of_the_warehouse(peek: Any) -> None:
    asked = {"months of a side": MONTHS_OF_A_SIDE, "blocks of a gap": BLOCKS_OF_A_GAP}
    for name, number in asked.items():
        assert peek(f"select minimum('{name}') as told") == [{"told": number}]
