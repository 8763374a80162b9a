"""Each missing figure or interval has a reason, which is true of the world that was planted."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from core.month import Month
from tests.warehouse.figures.planted import CONTROL, FIRST, WORLDS, Model, World, read_views
from tests.warehouse.reasons import silent_rows
from warehouse.database.schema import describe_view, list_views

pytestmark = pytest.mark.slow

Row = dict[str, Any]
SOURCES = ("blog", "news")
# what a reason adds: the curve is not one ramp
FURTHER = re.compile(r"; (?=growth |a smooth bend|a second rise|the change may be|without )")
EFFECT = re.compile(r"^(gap, growth|gap|growth|decay|slope): ")  # of effect_difference


@dataclass(frozen=True)
class Case:
    """A row of a view, and what was planted for it. ``model`` is None for a compressor."""

    row: Row
    world: World
    model: Model | None
    source: str | None

    @classmethod
    def of(cls, row: Row, model: str = "model") -> "Case":
        world = WORLDS[row["protocol"]]
        name = str(row[model]).removeprefix(f"{row['protocol']}-")
        source = row.get("source", row.get("scope"))
        short = source and source.removeprefix(f"{row['protocol']}-")
        short = short if short in SOURCES else None
        return cls(row, world, None if name == CONTROL else world.models[name], short)

    @property
    def planted(self) -> Model:
        assert self.model is not None, "a compressor has this reason"
        return self.model

    @property
    def months(self) -> range:
        first, last = (0, 24) if self.model is None else self.model.months
        return range(first, min(last, self.world.num_months))

    @property
    def cutoff(self) -> int:
        assert self.planted.cutoff is not None, "the cutoff is unknown"
        return self.planted.cutoff

    @property
    def before(self) -> int:
        return sum(month <= self.cutoff for month in self.months)

    @property
    def after(self) -> int:
        return len(self.months) - self.before

    @property
    def gap(self) -> float:
        """The planted rise, of the mean over sources if the row has no source."""
        scope = SOURCES if self.source is None else (self.source,)
        seen = [source in self.planted.gap_sources for source in scope]
        return self.planted.gap * sum(seen) / len(seen)

    @property
    def num_base(self) -> int:
        return len(set(range(self.cutoff - 5, self.cutoff + 1)) & set(self.months))

    @property
    def quarters(self) -> list[bool]:
        """For each quarter after the release: are there all months?"""
        firsts = [self.cutoff + 1 + 3 * number for number in range(4)]
        return [set(range(first, first + 3)) <= set(self.months) for first in firsts]

    def blocks(self) -> int:
        return len({month // 3 for month in self.months})

    def others(self) -> list[Model]:
        """Return the other models of known cutoff with a figure of the row's source."""
        return [
            each
            for each in self.world.models.values()
            if each is not self.model
            and each.cutoff is not None
            and (self.source is None or self.source in each.sources)
        ]

    def common_months(self) -> list[int]:
        """Months after the cutoffs of the row's two models."""
        other = Case.of(self.row, "other_model")
        cutoffs = [each.model.cutoff for each in (self, other) if each.model is not None]
        start = max([each for each in cutoffs if each is not None] or [-1])
        return [month for month in self.months if month in other.months and month > start]


def position(text: str) -> int:
    return Month(text).months_since(FIRST)


def has_no_such_step(case: Case, first: str, last: str, size: str) -> bool:
    inside = [end for end in case.planted.ends if position(first) <= end <= position(last)]
    return not case.planted.drift and (not inside or case.gap <= float(size))


def is_of_the_regime(case: Case, change: str, start: str) -> bool:
    return position(start) == case.world.regime and position(change) - 1 in case.planted.ends


def has_ends(case: Case, second: str, first: str) -> bool:
    return {position(first), position(second)} == set(case.planted.ends)


def has_few_blocks(case: Case, number: str) -> bool:
    if "other_model" in case.row:
        return int(number) == len({month // 3 for month in case.common_months()})
    return int(number) == case.before // 3 + case.after // 3


def lacks_quarters(case: Case, told: str) -> bool:
    names = ["months 0 to 2", "months 3 to 5", "months 6 to 8", "months 9 to 11"]
    missing = [name for name, whole in zip(names, case.quarters, strict=True) if not whole]
    return told == ", ".join(missing) and bool(missing)


def has_few_neighbours(case: Case, number: str) -> bool:
    month = position(str(case.row["month"])[:7])
    return int(number) == min(month - case.months[0], case.months[-1] - month) < 2


def has_few_others(case: Case, number: str, needed: str) -> bool:
    long = [
        each
        for each in case.others()
        if len({month // 3 for month in range(*each.months) if month < case.world.num_months}) >= 4
    ]
    is_in = case.planted.cutoff is not None and case.blocks() >= 4
    return int(number) == len(long) < int(needed) == (1 if is_in else 2)


def is_told_by_few(case: Case) -> bool:
    """Return True if at most one other model has the row's month."""
    month = position(str(case.row["month"])[:7])
    return sum(month in range(*each.months) for each in case.others()) <= 1


def num_told(case: Case) -> int:
    told = {month for each in case.others() for month in range(*each.months)}
    return len(told & set(case.months))


def is_in_the_minority(case: Case) -> bool:
    """Return True if as many models, or more, have other months or sources than the row's."""
    models = list(case.world.models.values())
    own = [(each.months, each.sources) for each in models].count(
        (case.planted.months, case.planted.sources)
    )
    return own < len(models)


Check = Callable[..., bool]
TRUTHS: dict[str, Check] = {
    r"(\d+) months?; 8 are needed": lambda case, num: int(num) == len(case.months) < 8,
    r"no change found from (\S+) to (\S+); a step of (\S+) bits per byte"
    r"(?:, or a rise over eight months of \S+,)? would be found in 80 %; "
    r"earlier cutoffs cannot be told, later ones not yet": has_no_such_step,
    r"no compressor, and no model of another cutoff than the stated one, "
    r"tells its months": lambda case: (
        not case.world.has_control and {each.cutoff for each in case.others()} == {case.cutoff}
    ),
    r"at or after (\S+)": lambda case, low: max(case.planted.ends) >= position(low),
    r"at or before (\S+)": lambda case, high: min(case.planted.ends) <= position(high),
    r"month not told": lambda case: case.row.get("cutoff_text") is None,
    r"a second rise after (\S+), the first after (\S+)": has_ends,
    r"a steady rise over all months fits as well as a change": lambda case: case.planted.drift > 0,
    r"a steady rise over all months, or rises after (\S+) and (\S+)": lambda case, first, second: (
        case.planted.drift > 0 or has_ends(case, second, first)
    ),
    r"one change explains the curve as well": lambda case: len(set(case.planted.ends)) < 2,
    r"no cell has losses by class of byte": lambda case: True,  # none of these worlds has any
    r"the change in (\S+) may be the source's: a regime begins in (\S+)": is_of_the_regime,
    r"the change may be the source's: one that all models share fits as well": lambda case: (
        {each.ends for each in case.world.models.values()} == {case.planted.ends}
    ),
    r"the change may be the source's: the other models change in the same months": lambda case: any(
        abs(own - other) <= 1
        for each in case.others()
        for own in case.planted.ends
        for other in each.ends
    ),
    r"only \S+-(\w+) shows the change: see its row of that source": lambda case, source: (
        case.planted.gap_sources == (source,) and bool(case.planted.ends)
    ),
    r"without \S+-(\w+), which alone shows another change": lambda case, source: (
        source not in case.planted.gap_sources and case.gap > 0
    ),
    r"the compressor may change at the same months": lambda case: case.world.site_break is not None,
    r"no other model with another known cutoff": lambda case: (
        {each.cutoff for each in case.others()} <= {case.planted.cutoff}
    ),
    r"no other model, and no compressor, tells its months": lambda case: (
        not case.world.has_control
        and len(case.world.models) < 3
        and all(each.months != case.planted.months for each in case.others())
    ),
    r"only one other model, and no compressor, tells its months": lambda case: (
        not case.world.has_control and len(case.world.models) == 2
    ),
    r"(\d+) other models? with a known cutoff and 4 blocks of three months; "
    r"(\d) (?:is|are) needed": has_few_others,
    r"no model with another cutoff tells its months": lambda case: (
        {each.cutoff for each in case.world.models.values()} > {case.planted.cutoff}
    ),
    r"a compressor has no cutoff|compressor|compressor: never trained": lambda case: (
        case.model is None
    ),
    r"other documents than most models": lambda case: case.planted.has_own_documents,
    r"other sources than most models": lambda case: case.planted.sources != SOURCES,
    r"too few months of \S+(?: and \S+)*, which the mean over sources has": lambda case: (
        case.planted.sources != SOURCES
    ),
    r"cutoff unknown|release unknown|cutoff unknown: may have been seen in training": lambda case: (
        case.planted.cutoff is None
    ),
    r"no month after the cutoff": lambda case: case.after == 0,
    r"no month before the cutoff": lambda case: case.before == 0,
    r"no source with months on both sides of the cutoff": lambda case: (
        0 in (case.before, case.after)
    ),
    r"one month after: no growth": lambda case: case.after == 1,
    r"(\d+) blocks? of three months; 4 are needed": lambda case, num: int(num) == case.blocks() < 4,
    r"a regime of the source begins right after the cutoff": lambda case: (
        case.world.regime == case.cutoff + 1
    ),
    r"(\d) months? right before the release; 6 are needed": lambda case, num: (
        int(num) == case.num_base < 6
    ),
    r"no quarter after the release has all months": lambda case: not any(case.quarters),
    r"incomplete or ahead: (.*) after the release": lacks_quarters,
    r"no interval: (\d+) months? on a side of the cutoff; 3 are needed": lambda case, num: (
        int(num) == min(case.before, case.after) < 3
    ),
    r"no interval: (\d+) blocks? of three months; 4 are needed": has_few_blocks,
    r"no interval: (\d+) complete quarters? after the release; 2 are needed": lambda case, num: (
        int(num) == sum(case.quarters) < 2
    ),
    r"no interval: (\d+) months(?: that all sources have)?; 12 are needed": lambda case, num: (
        int(num) == len(case.months) < 12
    ),
    r"of documents alone: (\d+) months?; 12 are needed": lambda case, num: (
        int(num) == len(case.months) < 12
    ),
    r"no common month after both cutoffs": lambda case: not case.common_months(),
    r"(\d+) months? on a side of it; 2 are needed": has_few_neighbours,
    r"no other model tells this month": is_told_by_few,
    r"other models tell too few of its months": lambda case: num_told(case) < 8,
    r"other models tell (\d+) of its months; (\d+) are needed": lambda case, num, needed: (
        int(num) == num_told(case) < int(needed)
    ),
    r"no interval: one document": lambda case: case.world.num_documents == 1,
    r"each month has a single cluster": lambda case: case.world.num_documents == 1,
    r"no interval over documents: (?:a source has none|a month has a single cluster; 4 months "
    r"of its source with more are needed)": lambda case: case.world.num_documents == 1,
    r"may have been seen in training": lambda case: (
        position(str(case.row["month"])[:7]) <= case.cutoff
    ),
    r"(?:no rank: )?other months (?:or sources )?than the most common ones": is_in_the_minority,
    r"the (?:first|second) may be (?:earlier|later).*": lambda case: len(case.planted.ends) == 2,
    # of the compressor's part of a gap
    r"control:zstd has no figure of these months": lambda case: not case.world.has_control,
    r"control:zstd has other documents in all months": lambda case: case.planted.has_own_documents,
    r"no month before the cutoff on the documents of control:zstd": lambda case: case.before == 0,
    r"no month after the cutoff on the documents of control:zstd": lambda case: case.after == 0,
    r"no source has the figure: see the rows of sources": lambda case: (
        0 in (case.before, case.after)
        or not case.world.has_control
        or case.planted.has_own_documents
    ),
    # No world has sizes, families, answers or landed documents, or the default protocol.
    r"family unknown|no rank in a (band|class): number of parameters unknown"
    r"|the documents have not landed|no losses under the default protocol": lambda case, _: True,
}


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    return read_views(tmp_path_factory.mktemp("reasons"))


def faults_of(row: Row, column: str) -> list[str]:
    """Return the parts of a row's reason that nobody planted, or that the tests do not know."""
    case = Case.of(row)
    parts = FURTHER.split(EFFECT.sub("", row[column]))
    if parts[-1] == "a smooth bend over all months fits as well":
        parts.pop()
        if len(case.planted.ends) == 1 and not case.planted.drift:
            return [row[column]]
    faults = []
    for part in parts:
        matches = [(check, re.fullmatch(text, part)) for text, check in TRUTHS.items()]
        found = [(check, match) for check, match in matches if match]
        if not found:
            faults.append(f"unknown: {part}")
        faults += [part for check, match in found if not check(case, *match.groups())]
    return faults


def test_the_reason_of_each_row_is_true_of_its_world(views: dict[str, list[Row]]) -> None:
    false = [
        (view, row["model"], row.get("source"), fault)
        for view, rows in views.items()
        for row in rows
        for column in ("reason", "compressor_reason")
        if row.get(column) and row.get("protocol") in WORLDS and "model" in row
        for fault in faults_of(row, column)
    ]
    assert false == []


def test_each_missing_interval_has_a_reason(views: dict[str, list[Row]]) -> None:
    described = {view: describe_view(list_views()[view]).columns for view in views}
    silent = {view: silent_rows(described[view], rows) for view, rows in views.items()}
    assert {view: rows for view, rows in silent.items() if rows} == {}


def models_of_a_month(world: World, source: str, month: int) -> list[Model]:
    """Return the models of known cutoff with a figure of a month and four blocks of months."""
    found = []
    for model in world.models.values():
        months = range(model.months[0], min(model.months[1], world.num_months))
        has_blocks = len({each // 3 for each in months}) >= 4
        if model.cutoff is not None and source in model.sources and month in months and has_blocks:
            found.append(model)
    return found


def test_the_reason_of_a_month_is_true_of_its_world(views: dict[str, list[Row]]) -> None:
    told = set()
    for row in views["month_difficulty"]:
        if row["protocol"] not in WORLDS or row["source"] is None:
            continue
        world = WORLDS[row["protocol"]]
        month = position(str(row["month"])[:7])
        models = models_of_a_month(world, row["source"].removeprefix(f"{row['protocol']}-"), month)
        told.add((row["protocol"], row["reason"]))
        if len(models) < 2:
            number = f"{len(models)} model{'' if len(models) == 1 else 's'} with this month"
            assert row["reason"].startswith(number)
            assert row["reason"].endswith("; 2 are needed")
        elif row["reason"] is not None:
            assert row["reason"] == "the models cannot tell it from their gaps"
            assert len({model.cutoff for model in models}) == 1
    assert {protocol for protocol, _ in told} >= {"steps", "short", "one-is-brief"}
    assert ("steps", None) in told
    assert ("one-is-brief", None) not in told


def test_what_is_planted_is_found(views: dict[str, list[Row]]) -> None:
    """Else every world could have the reason that nothing was found."""
    overall = [row for row in views["estimated_cutoff"] if row["scope"] == "all"]
    told = {row["model"]: row["cutoff_text"] for row in overall}
    for name in ("steps", "edges", "others", "twice", "drifts", "one-source"):
        for model, end in (("early", 7), ("middle", 11), ("late", 15)):
            assert told[f"{name}-{model}"] == str(FIRST + end), name
    assert told["alone-unknown"] == str(FIRST + 11)
    kinds = {row["reason"] for row in overall}
    for words in ("only", "one that all models share", "a regime begins", "8 are needed"):
        assert any(words in (kind or "") for kind in kinds), words
