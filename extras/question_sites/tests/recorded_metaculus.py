"""Metaculus: recorded posts, served page by page as the server's own paginator does."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr

from core.month import Month
from core.settings import Settings
from crawlers.questions.contract import QuestionContext
from extras.question_sites import metaculus
from simulator.server import Request, Response, as_json
from tests.crawlers.recorded import Case, Replay, replay

EXPECTED = {"metaculus_questions.json": {"open": 26, "not_a_choice": 8}}


def check_posts(folder: Path, settings: Settings) -> None:
    for path in sorted(folder.glob("*.json")):
        posts = [row.get("api_json", {}) for row in json.loads(path.read_bytes())]
        posts = [post for post in posts if type(post.get("id")) is int and "question" in post]
        assert posts
        for limit in (len(posts), 7):  # the last page is full, or not
            counts = crawl(posts, limit, settings)
            assert sum(counts.values()) == len(posts)
            assert counts == EXPECTED.get(path.name, counts)


def crawl(posts: list[dict[str, Any]], limit: int, settings: Settings) -> Counter[str]:
    def respond(request: Request) -> Response | None:
        offset = int(request.arg("offset"))
        size = min(int(request.arg("limit")), limit)
        shown = posts if request.arg("statuses") == "resolved" else []
        link = f"https://www.metaculus.com/api/posts/?limit={size}&offset={offset + size}"
        return as_json({"next": link, "previous": None, "results": shown[offset : offset + size]})

    tokens = {metaculus.SITE: SecretStr("0123456789abcdef")}
    site = Replay((metaculus.SITE,), respond)
    with replay(settings.model_copy(update={"tokens": tokens}), site) as (found, web):
        fetcher = metaculus.INFO.open_fetcher(found)
        context = QuestionContext(found, fetcher)
        assert list(metaculus.fetch_questions([Month("2025-01")], context)) == []
    offsets = [parse_qs(urlsplit(target).query).get("offset") for _, _, target in web.requests]
    assert [str(len(posts))] in offsets  # the list was read to its end
    return Counter(dict(context.passed_over))


CASES = [Case("metaculus", check_posts)]
