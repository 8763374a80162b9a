"""Months on the command line."""

from __future__ import annotations

import pytest

from core.errors import UsageError
from core.month import Month
from flows.options import window


def test_a_month_alone_and_a_range() -> None:
    assert window("2024-03", None) == [Month("2024-03")]
    assert window("2023-12", "2024-02") == [Month("2023-12"), Month("2024-01"), Month("2024-02")]


def test_nothing_said_leaves_the_choice_to_the_command() -> None:
    assert window(None, None) is None


@pytest.mark.parametrize(
    ("month", "to", "says"),
    [
        (None, "2024-01", "--to needs --month"),
        ("2024-02", "2024-01", "ends .2024-01. before it begins"),
        ("2024-13", None, "expected YYYY-MM"),
        ("2024-1", None, "expected YYYY-MM"),
        ("", None, "expected YYYY-MM"),
        ("2024-01", "", "expected YYYY-MM"),
    ],
)
def test_what_cannot_be_meant_is_refused(month: str | None, to: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        window(month, to)
