import datetime as dt
from pathlib import Path

import duckdb
import polars as pl
import pytest

from reports.site import cutoff_findings, findings
from reports.site.front import (
    HOW_TO_READ,
    contradicted_finding,
    headline_finding,
    slowest_finding,
)
from reports.site.history import Publication, differences
from reports.site.pages.compare import verdict_of
from reports.site.pages.source import lowest_new_finding

QUERIES = Path(findings.__file__).parent / "queries"


def test_titles_name_an_effect_that_is_there() -> None:
    rows = [{"model": "m", "adjusted_gap": 0.3, "gap_q_value": 0.001}]
    assert findings.ageing_finding(rows, []) == "m predicts text from after its cutoff worse"
    rows.append({"model": "n", "adjusted_gap": 0.1, "gap_q_value": 0.6})
    assert findings.ageing_finding(rows, []).startswith("1 of 2 models with")


def test_a_decay_is_named_only_where_it_is_more_than_chance() -> None:
    row = {"source": "news", "decay_mean_pct": 4.0, "decay_q_value": 0.001}
    untold = {"source": "code", "decay_mean_pct": None, "decay_q_value": None}
    assert findings.decay_finding([row, untold]) == "The loss is higher after the release on news"
    nothing = "On no source is the loss after the release higher by more than chance"
    for change in ({"decay_q_value": 0.2}, {"decay_mean_pct": -4.0}):
        assert findings.decay_finding([{**row, **change}, untold]) == nothing
    untested = {**row, "decay_q_value": None}  # a figure without an interval
    assert findings.decay_finding([untested]) == "No rise after the release can be told yet"


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
    told = "No model can be compared on months after its cutoff"
    assert findings.board_finding([late, control]) == told
    assert findings.board_finding([control], is_window=True) == told
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
        assert cutoff_findings.cutoff_finding({**row, "stated_cutoff": stated}, 1) == told
    alone = {name: "2024-01-01" for name in [*row, "stated_cutoff"]}
    assert (
        cutoff_findings.cutoff_finding(alone, 1)
        == "The losses place the cutoff in 2024-01, as stated"
    )
    unknown = {**alone, "estimated_cutoff_low": None}
    assert cutoff_findings.cutoff_finding(unknown, 1) == "No cutoff can be told from the losses"


def test_a_cutoff_that_is_inferred_or_planted_is_not_called_stated() -> None:
    row = dict.fromkeys(("estimated_cutoff_low", "estimated_cutoff_high"), "2020-11-01")
    place = "The losses place the cutoff in 2020-11"
    for provenance, month, told in (
        ("inferred", "2020-11-01", f"{place}, as inferred"),
        ("planted", "2020-11-01", f"{place}, as planted"),
        ("stated", "2020-11-01", f"{place}, as stated"),
        ("inferred", "2019-01-01", f"{place}, later than the inferred 2019-01"),
    ):
        known = {"stated_cutoff": month, "cutoff_provenance": provenance}
        assert cutoff_findings.cutoff_finding({**row, **known}, 1) == told


def test_known_cutoffs_are_counted_by_the_interval_that_holds_them() -> None:
    both = {"measured_cutoff_low": "2023-01-01", "measured_cutoff_high": "2023-03-01"}
    rows = [
        {"scope": "all", "is_contradicted": False, **both},
        {"scope": "all", "is_contradicted": True, **both},
        {"scope": "news", "is_contradicted": True, **both},
        {"scope": "all", "is_contradicted": None, **both},
    ]
    told = "2 known cutoffs are measured: 1 inside the 95 % interval, 1 outside"
    assert cutoff_findings.registry_finding(rows) == told
    assert cutoff_findings.registry_finding(rows[2:]).startswith("No known cutoff can be held")


def test_a_cutoff_of_which_one_end_is_told_is_not_called_measured() -> None:
    row = {"scope": "all", "measured_cutoff_low": "2019-04-01", "measured_cutoff_high": None}
    rows = [{**row, "is_contradicted": is_beyond} for is_beyond in (False, False, True)]
    told = "only one end is told, and 1 is beyond it"
    assert cutoff_findings.registry_finding(rows) == f"Of 3 known cutoffs, {told}"
    none = "only one end is told, and none are beyond it"
    assert cutoff_findings.registry_finding(rows[:2]) == f"Of 2 known cutoffs, {none}"
    both = {**row, "measured_cutoff_high": "2020-04-01", "is_contradicted": False}
    measured = "1 known cutoff is measured: 1 inside the 95 % interval, 0 outside"
    assert cutoff_findings.registry_finding([both, *rows]) == f"{measured}; of 3 more, {told}"
    untold = {**row, "measured_cutoff_low": None, "is_contradicted": False}
    assert cutoff_findings.registry_finding([untold, *rows]) == f"Of 3 known cutoffs, {told}"


def test_a_contradicted_cutoff_is_one_sentence() -> None:
    ends = ("estimated_cutoff_low", "estimated_cutoff", "estimated_cutoff_high")
    row = {**dict.fromkeys(ends, "2024-08-01"), "stated_cutoff": "2024-03-01", "cutoff_text": ""}
    rows = [{**row, "model": name} for name in "abc"]
    told = "a: The losses place the cutoff in 2024-08, later than the stated 2024-03"
    assert contradicted_finding(rows[:1]) == told
    assert contradicted_finding(rows[:2]) == f"{told}. 1 more has one, too"
    assert contradicted_finding(rows) == f"{told}. 2 more have one, too"


def test_a_single_gap_is_told_in_the_singular() -> None:
    row = {"model": "a", "adjusted_gap": 0.04, "adjusted_gap_low": -0.02,
           "adjusted_gap_high": 0.1, "gap_q_value": 0.2}  # fmt: skip
    assert headline_finding([row], "models", []) == (
        "a does not predict text from after its cutoff worse by more than chance: "
        "the gap is 0.040 bits per byte (95 %: −0.020 to 0.100)"
    )


def test_a_cutoff_of_which_one_end_is_told_is_not_called_unknown() -> None:
    row = {"estimated_cutoff": None, "stated_cutoff": "2020-01-01"}
    rows = [{**row, "cutoff_text": "at or after 2019-04"}, {**row, "cutoff_text": None}]
    told = "Not told: of the cutoff of 1 model, the losses tell only one end"
    assert contradicted_finding(rows) == told
    assert contradicted_finding(rows[1:]) == "No cutoff can be told from the losses yet"
    ends = {"estimated_cutoff_low": "2019-04-01", "estimated_cutoff_high": None}
    told = "The losses tell no more of the cutoff than that it is at or after 2019-04"
    assert cutoff_findings.cutoff_finding({**rows[0], **ends}, 1) == told


def test_those_that_are_lowest_equally_often_are_all_named() -> None:
    rows = [
        {"model": model, "month": month, "bits_per_byte": loss, "mean_rank": loss}
        for month, losses in enumerate([(1, 2), (2, 1)])
        for model, loss in zip(["a", "b"], losses, strict=True)
    ]
    told = "a and b each have the lowest loss in 1 of 2 months"
    assert findings.lowest_finding(rows, "month") == told
    assert findings.ranks_finding(rows) == "a and b each have the best mean rank in 1 of 2 months"


def test_a_month_that_one_model_was_trained_on_is_not_won_by_another() -> None:
    """The younger model is better on every month that is new to it."""
    rows = [
        {"model": model, "month": month, "bits_per_byte": loss, "is_new": month > cutoff}
        for month in range(1, 7)
        for model, loss, cutoff in (("old", 2.0, 0), ("young", 1.0, 3), ("control:xz", 4.0, 0))
    ]
    told = "young has the lowest loss in 3 of 3 months that are new to all models"
    assert lowest_new_finding(pl.DataFrame(rows)) == told
    newest = [{**row, "model": "newest", "is_new": False} for row in rows if row["model"] == "old"]
    told = "young has the lowest loss in 3 of 3 months, among models to which they are new"
    assert lowest_new_finding(pl.DataFrame([*rows, *newest])) == told


def test_models_that_are_equal_in_new_months_are_told_in_a_sentence() -> None:
    rows = [
        {"model": model, "month": month, "bits_per_byte": 1.0, "is_new": month > 3}
        for month in range(1, 7)
        for model in ("a", "b")
    ]
    told = "No model alone has the lowest loss of a month (of those that are new to all models)"
    assert lowest_new_finding(pl.DataFrame(rows)) == told


def test_models_of_equal_losses_are_not_said_to_be_lower_in_no_month() -> None:
    rows = [{"model": "a", "other": "b", "difference": 0.0}] * 3
    told = "a and b have equal losses in all months of sources"
    assert findings.months_finding(rows) == told
    told = "b has a lower loss than a in 1 of 4 months of sources"
    assert findings.months_finding([*rows, {**rows[0], "difference": 0.1}]) == told


def test_a_pair_without_a_reason_is_not_said_to_have_few_months() -> None:
    known = {"model": "a", "other": "b", "source": None, "basis": "all months"}
    figures = {"difference": 0.1, "low": None, "high": None, "p": None, "n": 9, "reason": None}
    verdict = verdict_of(pl.DataFrame([{**known, **figures}]), "a", "b")
    assert verdict is not None
    assert verdict["about"] == "Over all months. Negative: a is better. No p-value."


def test_a_gap_is_not_said_to_be_the_mean_of_its_line() -> None:
    assert "The gap of the title is not the mean of its line" in HOW_TO_READ


def test_only_models_whose_intervals_reach_the_lowest_growth_are_alike() -> None:
    def row(model: str, growth: float) -> dict[str, object]:
        ends = {"growth_per_year_low": growth - 0.1, "growth_per_year_high": growth + 0.1}
        return {"model": model, "growth_per_year": growth, **ends}

    rows = [row("a", 0.1), row("b", 0.2), row("c", 0.9)]
    told = "Not told: 1 other interval overlaps the lowest growth, a's 0.100 bits per byte a"
    assert slowest_finding(rows).startswith(told)
    assert slowest_finding(rows[:2]).startswith(told)


def test_compressors_are_not_counted_as_models_of_the_first_publication() -> None:
    board = dict.fromkeys(["a", "control:xz", "control:zstd"], {})
    now = dt.datetime(2024, 7, 1, tzinfo=dt.UTC)
    [change] = differences(None, Publication("2024-06", board, {"news/2024-06": 3}), now)
    told = "First publication: 1 model and 2 compressors on 1 source, up to 2024-06."
    assert change.text == told


def test_the_smallest_gap_of_a_source_is_for_one_number_of_months() -> None:
    with duckdb.connect() as database:
        database.execute("create macro is_compressor(model) as model like 'control:%'")
        database.execute("""
            create macro detectable_gap_at(num_more) as table
            select
                'news' as source, m.model, 'default' as protocol, n.num as num_months_each_side,
                m.gap / n.num as detectable_gap, 6 as num_documents
            from (values ('a', 1.2), ('b', 2.4), ('control:xz', 9)) as m (model, gap)
            cross join (values (3), (6), (12)) as n (num)
        """)
        query = (QUERIES / "methods_resolution.sql").read_text(encoding="utf-8")
        rows = database.sql(query.replace("$protocol", "'default'")).fetchall()
    assert rows == [("news", pytest.approx(0.3), 6, 2)]
