"""Commands `corpus diff` and `corpus compare`."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Web
from tests.commands import import_notes, joined_words

Tidemark = Callable[..., Any]


def test_versions_are_compared(tidemark: Tidemark, tmp_path: Path) -> None:
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide", "wind and rain")
    ran = tidemark("corpus", "diff", "notes", "--versions").expect(0)
    assert "articles" in ran.out
    assert "version 2" in joined_words(ran.out)


@pytest.mark.smoke
def test_months_are_compared_with_the_one_before_and_the_first(
    tidemark: Tidemark, tmp_path: Path
) -> None:
    for number, month in enumerate(("2024-01", "2024-02", "2024-03")):
        import_notes(tidemark, tmp_path, month, "sand and tide", f"wind and wave {'x' * number}")
    ran = tidemark("corpus", "diff", "notes", "--from", "2024-02", "--to", "2024-03").expect(0)
    rows = [joined_words(line).split() for line in ran.out.splitlines() if "articles" in line]
    assert [row[:2] for row in rows] == [
        ["2024-02", "2024-01"], ["2024-03", "2024-01"], ["2024-03", "2024-02"],
    ]  # fmt: skip
    assert all(0 < float(row[-1]) < 0.5 for row in rows)
    assert tidemark("corpus", "diff", "notes", "--versions").code == 2


@pytest.mark.slow
def test_monitored_pages_are_compared_one_by_one(tidemark: Tidemark, sites: Web) -> None:
    window = ("--from", "2024-01", "--to", "2024-03")
    assert tidemark("crawl", "-s", "wikipedia_monitored", *window).code == 0
    tidemark("corpus", "compare").expect(0, out="3 of 3 comparisons made, 0 were landed already\n")
    query = (
        "select month, method, difference_from_previous as previous, "
        "difference_from_first as first from text_difference order by month"
    )
    table = tidemark("sql", query, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["month"], row["method"]) for row in rows] == [
        ("2024-02-01", "articles"), ("2024-03-01", "articles"),
    ]  # fmt: skip
    # The simulated pages change every month, and keep a part of their text.
    assert all(0 < float(row[name]) < 0.8 for row in rows for name in ("previous", "first"))
    assert rows[0]["first"] == rows[0]["previous"]
    again = tidemark("corpus", "compare", "--against", "first", "--source", "wikipedia_monitored")
    assert again.out == "0 of 2 comparisons made, 2 were landed already\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("-s nope", "nothing of nope is sealed"),
        ("--to 2024-01", "--to needs --from"),
        ("--against last", "Invalid value"),
    ],
)
def test_a_wrong_request_is_refused(
    tidemark: Tidemark, home: Path, arguments: str, says: str
) -> None:
    tidemark("corpus", "compare", *arguments.split()).expect(2, says, out="")
    assert not [path for path in home.rglob("*") if path.is_file()]
