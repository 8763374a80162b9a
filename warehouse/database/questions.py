"""The questions that analysts ask first, from ``reference/start_here.yml``.

Table ``start_here`` holds them, docs/analysts.md prints them with the demo's answers, and the site
lists them on its page of data and in ``llms.txt``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "reference" / "start_here.yml"


@dataclass(frozen=True)
class AnalystQuestion:
    """A question, and the query that answers it."""

    question: str
    view: str  # table, view or macro that the query reads first of all
    query: str  # one statement, without a semicolon
    note: str = ""  # explanation in Markdown
    is_empty: str = ""  # why the query gives no row of the demo


@functools.cache
def list_analyst_questions() -> tuple[AnalystQuestion, ...]:
    """Return the questions in reading order."""
    import yaml  # late, as queries do not need it

    return tuple(AnalystQuestion(**entry) for entry in yaml.safe_load(FILE.read_text("utf-8")))
