"""Polymarket: recorded markets, each in the list of closed ones."""

import json
from pathlib import Path

from core.corpus.questions import Question
from core.month import Month
from core.settings import Settings
from crawlers.contract import Drop
from crawlers.questions.contract import QuestionContext
from crawlers.web.fetcher import read_time
from extras.question_sites import polymarket
from simulator.server import as_json
from tests.crawlers.recorded import Case, Replay, replay

# By file: the answer's index, or the reason of the drop.
EXPECTED: dict[str, int | str] = {
    "closed_binary": 1,
    "closed_scalar_2021": "unknown_format",
    "closed_zero_zero_2020": "unknown_format",
}


def check_markets(folder: Path, settings: Settings) -> None:
    for path in sorted(folder.glob("*.json")):
        market = json.loads(path.read_bytes())
        closed_at = read_time(market["closedTime"])
        assert closed_at
        month = Month.of(closed_at)
        site = Replay((polymarket.SITE,), lambda _, row=market: as_json({"markets": [row]}))  # type: ignore[misc]
        with replay(settings, site) as (found, _):
            context = QuestionContext(found, polymarket.INFO.open_fetcher(found))
            items = dict(  # the same market in every band
                (getattr(item, "question_id", getattr(item, "native_id", "")), item)
                for of_month, item in polymarket.fetch_questions([month], context)
                if of_month == month
            )
        item = items[market["id"]]
        assert isinstance(item, Question | Drop)
        result = item.answer_index if isinstance(item, Question) else item.reason
        assert result == EXPECTED.get(path.stem, result)
        if isinstance(item, Question):
            assert item.title == market["question"] and item.resolved_at in month
            assert list(item.options) == json.loads(market["outcomes"])


CASES = [Case("polymarket", check_markets)]
