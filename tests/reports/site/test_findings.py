from reports.site import findings


def test_titles_name_an_effect_that_is_there() -> None:
    rows = [{"model": "m", "adjusted_gap": 0.3, "gap_q_value": 0.001}]
    assert findings.ageing_finding(rows, []) == "m predicts text from after its cutoff worse"
    rows.append({"model": "n", "adjusted_gap": 0.1, "gap_q_value": 0.6})
    assert findings.ageing_finding(rows, []).startswith("1 of 2 models with")


def test_who_is_best_is_told_only_if_it_is_alone() -> None:
    best = {"model": "a", "rank": 1, "rank_low": 1, "rank_high": 1, "num_months": 2,
            "bits_per_byte_low": 0.9, "bits_per_byte_high": 1.1,
            "basis": "after 2024-01"}  # fmt: skip
    other = {**best, "model": "b", "rank": 2, "rank_low": 2, "rank_high": 2}
    assert findings.board_finding([best, other]) == "a predicts these months best"
    month = [{**best, "num_months": 1}, other]
    assert findings.board_finding(month) == "a predicts this month best"
    shared = {**best, "model": "b", "rank_high": 3}
    assert findings.board_finding([best, shared]).startswith("2 models share the first rank")
    assert findings.board_finding([best]) == "No other model can be compared with a yet"
    unknown = {**best, "basis": "cutoff unknown: months may have been seen in training"}
    seen = "a has the lowest loss, maybe on text seen in training"
    assert findings.board_finding([unknown, other]) == seen


def test_compressors_are_no_contestants() -> None:
    model = {"model": "a", "rank": 1, "rank_low": 1, "rank_high": 1, "num_months": 2,
             "bits_per_byte_low": 0.9, "bits_per_byte_high": 1.1,
             "basis": "after 2024-01"}  # fmt: skip
    worse = {**model, "model": "b", "rank": 2, "rank_low": 2, "rank_high": 2}
    control = {**model, "model": "control:xz", "rank": None, "rank_low": None, "rank_high": None,
               "bits_per_byte_low": 2.9, "bits_per_byte_high": 3.1}  # fmt: skip
    assert findings.board_finding([control, model, worse]) == "a predicts these months best"
    near = {**control, "bits_per_byte_low": 1.05}
    shared = "a has the lowest loss, but cannot be told apart from control:xz"
    assert findings.board_finding([near, model, worse]) == shared
    better = {**control, "bits_per_byte_high": 0.8}
    told = "No model is better than the best compressor"
    assert findings.board_finding([better, model, worse]) == told
    late = {**worse, "rank": None, "rank_low": None, "rank_high": None}
    assert findings.board_finding([late, control]) == "No model has a month after its cutoff yet"
    assert findings.board_finding([control]) == "No model is measured"


def test_neighbours_without_a_test_are_not_called_alike() -> None:
    unknown, sure = {"p_value_adjusted": None}, {"p_value_adjusted": 0.01}
    assert findings.neighbours_finding([unknown]).startswith("Months are too few")
    assert findings.neighbours_finding([unknown, sure]).startswith("1 of 2 neighbours")


def test_lists_of_names_are_short() -> None:
    assert findings.listed(["a"]) == "a"
    assert findings.listed(["a", "b", "c"]) == "a, b and c"
    assert findings.listed(list("abcdef")) == "a, b, c and 3 more"


def test_a_cutoff_is_compared_with_the_stated_one() -> None:
    row = {"estimated_cutoff_low": "2024-01-01", "estimated_cutoff_high": "2024-03-01"}
    place = "The losses place the cutoff in 2024-01 to 2024-03"
    for stated, told in (
        ("2024-02-01", f"{place}; 2024-02 is stated"),
        ("2023-12-01", f"{place}, later than the stated 2023-12"),
        ("2024-04-01", f"{place}, earlier than the stated 2024-04"),
        (None, f"{place}; none is stated"),
    ):
        assert findings.cutoff_finding({**row, "stated_cutoff": stated}, 1) == told
    alone = {name: "2024-01-01" for name in [*row, "stated_cutoff"]}
    assert findings.cutoff_finding(alone, 1) == "The losses place the cutoff in 2024-01, as stated"
    unknown = {**alone, "estimated_cutoff_low": None}
    assert findings.cutoff_finding(unknown, 1) == "No cutoff can be told from the losses"


def test_stated_cutoffs_are_counted_by_the_interval_that_holds_them() -> None:
    rows = [
        {"scope": "all", "is_contradicted": False},
        {"scope": "all", "is_contradicted": True},
        {"scope": "news", "is_contradicted": True},
        {"scope": "all", "is_contradicted": None},
    ]
    told = "2 stated cutoffs are measured: 1 inside the 95 % interval, 1 outside"
    assert findings.registry_finding(rows) == told
    assert findings.registry_finding(rows[2:]).startswith("No stated cutoff can be held")
