"""Find the date that is some days after 1 January 2000.

Validity: any list of two numbers or more. The first k numbers are added, and k doubles from level
to level: 1, 2, 4, 8.
"""

from __future__ import annotations

from extras.scylla.list_puzzle import SteppedPuzzle
from extras.scylla.puzzle import Answer, Instance

_DAYS_PER_400_YEARS = 146_097


class AddDays(SteppedPuzzle):
    """Date arithmetic in the Gregorian calendar."""

    title = "Add Days"
    statement = (
        "You are given a list of numbers of days $l$ and a number $k$. Start on 1 January 2000 in "
        "the Gregorian calendar, and go forward by each of the first $k$ numbers of days, one "
        "after the other. Find the date on which you arrive."
    )
    answer_rule = (
        "Write the answer as a list of three numbers, year, month and day, in square brackets, "
        "separated by commas."
    )
    level = None
    complexity = "O(1) to O(N)"

    def solve(self, instance: Instance) -> Answer:
        """Add the first k numbers, O(k), and convert the sum of days, O(1)."""
        (k,) = instance.parameters
        return _date_after(sum(instance.rows[0][:k]))


def _date_after(days: int) -> Answer:
    """Return year, month and day that come a number of days after 1 January 2000.

    Years are counted from March, so that a leap day is the last day of a year (Hinnant 2014,
    "chrono-compatible low-level date algorithms").
    """
    era, day = divmod(days + 306, _DAYS_PER_400_YEARS)  # 306 days after 1 March 1999
    day += 1999 % 400 * 365 + 1999 % 400 // 4 - 1999 % 400 // 100
    cycles, day = divmod(day, _DAYS_PER_400_YEARS)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153  # 0 is March
    year += 400 * (era + cycles + 1999 // 400) + (month > 9)
    return (year, month + 3 if month < 10 else month - 9, day - (153 * month + 2) // 5 + 1)


PUZZLE = AddDays()
