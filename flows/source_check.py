"""`tidemark sources check`: does a site still answer as the simulator has it?"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from core.errors import UsageError
from core.month import Month
from core.permissions import require_permission
from core.settings import Settings
from core.storage import Store
from crawlers import answer_shapes
from crawlers.answer_shapes import Difference
from crawlers.contract import Crawler, SourceInfo, load_crawler
from crawlers.questions.contract import (
    QuestionCrawler,
    QuestionSourceInfo,
    list_question_sources,
    load_question_crawler,
)
from crawlers.questions.crawl import require_token
from flows.console import print_table
from simulator.server import Web, serve
from simulator.world import World

MAX_SHOWN = 20  # differences of one kind of request; of a true page, most elements are new


def check_source(source: str, settings: Settings) -> tuple[list[Difference], list[str]]:
    """Compare the answers of a source's site with those of the simulated one, and keep the shapes.

    Returns:
        All differences; and what is wrong, in words.

    Raises:
        UnknownName: there is no such source.
        UsageError: the source cannot give any month today, or is read in a browser.
        AccessRefused: the source needs a permission, and none is in force.
        TokenRefused: it needs a token, and settings have none.
    """
    crawler = _load(source)
    store, info = Store(settings.home), crawler.INFO
    require_permission(store, source, info.permission)
    month = month_to_ask(info)
    if isinstance(info, QuestionSourceInfo):
        require_token(info, settings)
    with serve(World(0, month - 1, month)) as web, tempfile.TemporaryDirectory() as folder:
        news = {
            "sites": web.urls,
            "tokens": _tokens_of(web),
            "request_interval_s": 0.0,
            "work_dir": Path(folder),
        }
        simulated = answer_shapes.watch(crawler, month, settings.model_copy(update=news))
    true = answer_shapes.watch(crawler, month, settings)
    both = {
        name: {kind: shape.as_json() for kind, shape in sorted(watched.shapes.items())}
        for name, watched in (("simulated", simulated), ("true", true))
    }
    store.write_bytes(f"shapes/{source}.json", json.dumps(both, indent=1).encode())
    differences = list(answer_shapes.compare(simulated.shapes, true.shapes))
    wrong = [f"{source}: {each}" for each in differences if each.is_fault]
    wrong += [str(each.error) for each in (simulated, true) if each.error]
    if not true.num_items:
        wrong.append(f"{source}: not one item of {month} was found, so little was compared")
    return differences, wrong


def _load(source: str) -> Crawler | QuestionCrawler:
    if source not in list_question_sources():
        return load_crawler(source)
    crawler = load_question_crawler(source)
    if crawler.INFO.in_browser:
        raise UsageError(
            f"{source} is read in a browser, whose pages have no fields to compare; "
            "crawl a month of it instead"
        )
    return crawler


def _tokens_of(web: Web) -> dict[str, SecretStr]:
    """The simulated sites' own; the true ones are for nobody else."""
    sites = {key: site for key, site in web.sites.items() if hasattr(site, "token")}
    return {key: SecretStr(site.token) for key, site in sites.items()}


def month_to_ask(info: SourceInfo) -> Month:
    """Return the last complete month, or the last that the source has.

    Raises:
        UsageError: it has neither now.
    """
    for month in filter(None, (Month.last_complete(), info.last_month)):
        if info.lacks(month) is None:
            return month
    raise UsageError(f"nothing to ask for: {info.lacks(Month.last_complete())}")


def print_differences(source: str, differences: Sequence[Difference]) -> None:
    """Print what differs, not more than MAX_SHOWN of each kind of request."""
    rows: list[tuple[str, str, str, str]] = []
    shown: Counter[str] = Counter()
    for each in differences:
        shown[each.kind] += 1
        if each.is_fault or shown[each.kind] <= MAX_SHOWN:
            rows.append((each.kind, each.what, each.path, each.detail))
    for kind, number in shown.items():
        if number > MAX_SHOWN:
            rows.append((kind, "…", f"{number} differences in all", ""))
    if rows:
        print_table(source, ["request", "what", "field", "type"], rows)
