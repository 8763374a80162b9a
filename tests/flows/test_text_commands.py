"""Comparing texts as a user types it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Web

Tidemark = Callable[..., Any]


def test_monitored_pages_are_compared_one_by_one(tidemark: Tidemark, sites: Web) -> None:
    window = ("--month", "2024-01", "--to", "2024-03")
    assert tidemark("crawl", "-s", "wikipedia_monitored", *window).code == 0
    ran = tidemark("compare-texts")
    assert ran.code == 0
    assert ran.out == "3 of 3 comparisons made, 0 were landed already\n"
    query = (
        "select month, method, difference_from_previous as previous, "
        "difference_from_first as first from text_difference order by month"
    )
    table = tidemark("sql", query, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["month"], row["method"]) for row in rows] == [
        ("2024-02-01", "articles"), ("2024-03-01", "articles"),
    ]  # fmt: skip
    # The simulated pages change every month, and keep a part of what they had.
    assert all(0 < float(row[name]) < 0.8 for row in rows for name in ("previous", "first"))
    assert rows[0]["first"] == rows[0]["previous"]
    again = tidemark("compare-texts", "--against", "first", "--source", "wikipedia_monitored")
    assert again.out == "0 of 2 comparisons made, 2 were landed already\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-s nope", "nothing of nope is sealed"),
        ("--to 2024-01", "--to needs --month"),
        ("--against last", "Invalid value for '--against'"),
    ],
)
def test_a_wrong_request_exits_with_2(
    tidemark: Tidemark, home: Path, options: str, says: str
) -> None:
    ran = tidemark("compare-texts", *options.split())
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert not home.exists()
