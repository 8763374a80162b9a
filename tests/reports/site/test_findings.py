import random

import pytest

from reports.site import findings

# Rows of worlds without any effect: p-values are uniform, and intervals hold zero in 95 of 100.


def _q_values(p_values: list[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=lambda i: -p_values[i])
    q_values, least = [0.0] * len(p_values), 1.0
    for place, i in enumerate(order):
        least = min(least, p_values[i] * len(p_values) / (len(p_values) - place))
        q_values[i] = least
    return q_values


@pytest.mark.parametrize("num_models", [1, 4, 20])
def test_titles_seldom_name_an_effect_where_there_is_none(num_models: int) -> None:
    dice, wrong = random.Random(0), 0
    for _ in range(1000):
        q_values = _q_values([dice.random() for _ in range(num_models)])
        rows = [
            {"model": f"m{i}", "source": f"s{i}", "adjusted_gap": dice.gauss(0, 1),
             "gap_q_value": q_values[i]}
            for i in range(num_models)
        ]  # fmt: skip
        wrong += findings.ageing_finding(rows) != (
            "No model predicts the months after its cutoff worse by more than chance"
        )
    assert wrong <= 65  # 5 % of 1,000 and two standard errors


def test_titles_name_an_effect_that_is_there() -> None:
    rows = [{"model": "m", "adjusted_gap": 0.3, "gap_q_value": 0.001}]
    assert findings.ageing_finding(rows) == "m predicts text from after its cutoff worse"
    rows.append({"model": "n", "adjusted_gap": 0.1, "gap_q_value": 0.6})
    assert findings.ageing_finding(rows).startswith("1 of 2 models")


def test_who_is_best_is_told_only_if_it_is_alone() -> None:
    best = {"model": "a", "rank_low": 1, "rank_high": 1}
    assert findings.board_finding([best]) == "a predicts these months best"
    shared = {"model": "b", "rank_low": 1, "rank_high": 3}
    assert findings.board_finding([best, shared]).startswith("2 models share the first rank")


def test_lists_of_names_are_short() -> None:
    assert findings.listed(["a"]) == "a"
    assert findings.listed(["a", "b", "c"]) == "a, b and c"
    assert findings.listed(list("abcdef")) == "a, b, c and 3 more"
