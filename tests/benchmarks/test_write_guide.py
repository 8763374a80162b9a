"""Printed results that differ from what queries give are found and replaced."""

from benchmarks.write_guide import differences, line_differences, with_answers
from core.month import Month
from core.settings import Settings
from tests.losses import loss_row, publish_rows

GUIDE = """
```sql
select model, bits_per_byte from monthly_loss;
```

```text
model    bits_per_byte
org/one  {}
```
"""


def test_a_figure_that_differs_is_named_and_replaced(settings: Settings) -> None:
    row = loss_row("org/one", "news", Month("2024-03").first_day, "a")
    publish_rows(settings, [row])
    written = with_answers(GUIDE.format("0.5"), settings)
    assert not list(differences(written, settings))
    [printed] = [line.split()[1] for line in written.splitlines() if line.startswith("org/one")]
    near = GUIDE.format(float(printed) + 0.002)
    assert with_answers(near, settings) == near
    far = GUIDE.format(float(printed) + 0.2)
    assert len(list(differences(far, settings))) == 1
    assert with_answers(far, settings) == written


def test_lines_differ_in_a_word_a_number_or_their_count() -> None:
    table = "a  1.00\nb  NULL"
    assert not list(line_differences(table, "a  1.004\nb  NULL"))
    for other in ("a  1.02\nb  NULL", "a  1.00\nc  NULL", "a  1.00", f"{table}\nc  2"):
        assert len(list(line_differences(table, other))) == 1
