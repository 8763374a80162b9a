"""Imported answers to questions that are crawled, too."""

from typing import Any

import pytest

from core.errors import SchemaMismatch
from tests.tiers import few
from tests.warehouse.land.test_answers import answered, land, question

__all__ = ["answered", "land"]

pytestmark = pytest.mark.usefixtures("kept_open")


def test_foreign_answers_stand_beside_ours(land: Any, answered: Any, peek: Any, give: Any) -> None:
    give("m,2023-01-01,a,2024-03-01,,2,0\n")
    land(answered([question("a")]))
    rows = peek("from internal.judged_answers order by protocol")
    assert [(row["protocol"], row["is_correct"]) for row in rows] == [
        ("given", False), ("letter", True),
    ]  # fmt: skip
    with pytest.raises(SchemaMismatch, match="what is known of this question of s: opened on"):
        give("m,2023-01-01,a,2024-03-02,,2,0\n", replace=True)


def test_a_crawl_tells_what_came_true(land: Any, answered: Any, peek: Any, give: Any) -> None:
    give('m,2023-01-01,a,2024-03-01,,3,0,"[0.5, 0.375, 0.125]"\n', ",probabilities")
    land(answered([question("a", options=("x", "y", "z"))]))
    [row] = peek("from internal.judged_answers where protocol = 'given'")
    assert (row["p_correct"], row["brier"]) == (0.375, 0.65625)


CONTRADICTED = [
    (",chosen_option", "2,1,0", {}),
    (",chosen_option", "2,0,1", {}),
    (",correct_option", "2,1,0", {}),
    (",probabilities", "2,1,0.75|0.25", {}),
    (",probabilities,p_correct", "3,0,0.5|0.25|0.25,0.25", {}),
    (",p_correct", "3,1,0.5", {}),
    (",correct_option,p_correct", "3,0,2,0.5", {"options": ("x", "y", "z")}),
    ("", "2,1", {"status": "void", "answer_index": None}),
]


@pytest.mark.parametrize("told", few([(each,) for each in CONTRADICTED], 3))
def test_foreign_answers_that_a_crawl_contradicts_count_nowhere(
    land: Any, answered: Any, peek: Any, give: Any, caplog: Any, told: Any
) -> None:
    more, cells, changes = told
    give(f"foreign,2023-01-01,a,2024-03-01,,{cells}\n", more)
    give("other,,b,2024-03-01,,2,1,1\n", ",chosen_option")
    pair = answered([question("a", **changes), question("b")])
    land(pair)
    rows = peek("from internal.judged_answers where protocol = 'given'")
    assert [(row["model"], row["question_id"]) for row in rows] == [("other", "b")]
    [record] = caplog.records
    assert "1 landed answers of foreign to 1 questions of s (one is a)" in record.getMessage()
    caplog.clear()
    land(pair)
    assert not caplog.records, "said once"
    if not changes:
        assert give("foreign,2023-01-01,a,2024-03-01,,2,1\n", replace=True) == 1
        assert len(peek("from internal.judged_answers where protocol = 'given'")) == 2


def test_a_void_question_takes_no_foreign_answer(land: Any, answered: Any, give: Any) -> None:
    void = question("v", status="void", answer_index=None)
    land(answered([question("a"), void]))
    with pytest.raises(SchemaMismatch, match="2 options, void"):
        give("m,,v,2024-03-01,,2,1\n")
