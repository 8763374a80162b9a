"""Printed results that differ from what queries give are found and replaced."""

import re

import pytest

from benchmarks.coverage_rows import row_differences, with_rows
from benchmarks.write_guide import (
    ANALYSTS,
    answer,
    differences,
    line_differences,
    printed_answers,
    with_answers,
)
from core.month import Month
from core.settings import Settings
from tests.losses import loss_row, publish_rows

GUIDE = """
```sql
select model, bits_per_byte from monthly_loss where month = '2024-01-01';
```

```text
model    bits_per_byte
org/one  {}
```
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A database with one model in two months; tests only read it."""
    settings = Settings(home=str(tmp_path_factory.mktemp("published")))
    months = (Month("2024-01"), Month("2024-02"))
    publish_rows(settings, [loss_row("org/one", "news", each.first_day, "a") for each in months])
    return settings


def test_a_figure_that_differs_is_named_and_replaced(published: Settings) -> None:
    settings = published
    written = with_answers(GUIDE.format("0.5"), settings)
    assert not list(differences(written, settings))
    [printed] = [line.split()[1] for line in written.splitlines() if line.startswith("org/one")]
    near = GUIDE.format(float(printed) + 0.002)
    assert with_answers(near, settings) == near
    assert with_answers(near, settings, 0) == written
    assert len(list(differences(near, settings, 0))) == 1
    far = GUIDE.format(float(printed) + 0.2)
    assert len(list(differences(far, settings))) == 1
    assert with_answers(far, settings) == written


def test_lines_differ_in_a_word_a_number_or_their_count() -> None:
    table = "a  1.00\nb  NULL"
    assert not list(line_differences(table, "a  1.004\nb  NULL"))
    for other in ("a  1.02\nb  NULL", "a  1.00\nc  NULL", "a  1.00", f"{table}\nc  2"):
        assert len(list(line_differences(table, other))) == 1


def test_lines_of_compressors_are_equal_to_the_last_digit() -> None:
    assert len(list(line_differences("control:xz  1.000", "control:xz  1.001"))) == 1
    pair = "control:xz  reference-2024-01"
    assert not list(line_differences(f"{pair}  1.000", f"{pair}  1.001"))


def test_what_any_warehouse_gives_is_as_printed(published: Settings) -> None:
    """The dictionary and the minima need no demo, so a changed view is found at once."""
    printed = printed_answers(ANALYSTS.read_text("utf-8"))
    own = [sql for sql in printed if re.search(r"\bfrom (dictionary|minima)\b", sql)]
    assert len(own) >= 2
    for sql in own:
        assert list(line_differences(printed[sql], answer(sql, published), 0)) == []


PAGE = """
| item | command | rows | state |
|---|---|---|---|
| Losses | `tidemark sql "from monthly_loss"`, `tidemark sql "from scylla_scores"` | {} | runs |
| Puzzles | `tidemark scylla run -m M`, `tidemark sql "from scylla_scores"` | {} | {} |
| Scores | `tidemark score` | {} | runs |
"""
NONE = "no rows on the demo: needs the first command"


def test_numbers_of_rows_are_written_and_compared(published: Settings) -> None:
    settings = published
    right = PAGE.format("2 and 0", "0", NONE, "–")
    assert with_rows(PAGE.format("–", "7", NONE, "1,000"), settings) == right
    assert list(row_differences(right, settings)) == []
    for wrong, complaint in (
        (PAGE.format("3 and 0", "0", NONE, "–"), "Losses: printed 3 and 0 rows, found 2 and 0"),
        (PAGE.format("2 and 0", "0", "runs", "–"), "Puzzles: its state does not begin with"),
    ):
        [found] = row_differences(wrong, settings)
        assert found.startswith(complaint)
