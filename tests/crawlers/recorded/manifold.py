"""Manifold: recorded markets, each as the only one of the list, and as its own record."""

import datetime as dt
import json
from pathlib import Path

from core.corpus.questions import Question
from core.month import Month
from core.settings import Settings
from crawlers.questions import manifold
from crawlers.questions.contract import QuestionContext
from simulator.server import Request, Response, as_json
from tests.crawlers.recorded import Case, Replay, replay

ANSWERS = {"lite_market": "No"}


def check_markets(folder: Path, settings: Settings) -> None:
    for path in sorted(folder.glob("*.json")):
        market = json.loads(path.read_bytes())

        def respond(request: Request, row: object = market) -> Response:
            return as_json([row] if request.path == "/v0/markets" else row)

        resolved_at = dt.datetime.fromtimestamp(market["resolutionTime"] / 1000, dt.UTC)
        months = [Month.of(resolved_at)]
        with replay(settings, Replay((manifold.SITE,), respond)) as (found, _):
            context = QuestionContext(found, manifold.INFO.open_fetcher(found))
            [(_, item)] = manifold.fetch_questions(months, context)
        assert isinstance(item, Question)
        assert (item.title, item.resolved_at) == (market["question"], resolved_at)
        answered = None if item.answer_index is None else item.options[item.answer_index]
        assert answered == ANSWERS.get(path.stem, answered)


CASES = [Case("manifold", check_markets)]
