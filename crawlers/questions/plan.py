"""Plan the crawl of questions: which months of which sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.corpus.permissions import require_permission
from core.errors import AccessRefused, UsageError
from core.month import Month, require_complete
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.contract import list_question_sources, load_question_crawler
from crawlers.questions.crawl import require_token


def plan_question_crawl(
    sources: Sequence[str] | None,
    months: Sequence[Month],
    settings: Settings,
    add_tokens: Callable[[str, Settings], Settings],
) -> tuple[dict[str, list[Month]], list[str]]:
    """Return the months to crawl of each source of questions, and reasons for left-out sources.

    Raises:
        UnknownName: there is no such source.
        FutureMonth: the last month has not ended.
        AccessRefused: an explicitly requested source lacks its permission or token.
        UsageError: an explicitly requested source covers none of the months.
    """
    require_complete(max(months))
    plan = {}
    left_out = []
    for source in sources or list_question_sources():
        info = load_question_crawler(source).INFO
        try:
            require_permission(Store(settings.home), source, info.permission)
            require_token(info, add_tokens(source, settings))
            lacks = {month: info.lacks(month) for month in months}
            if all(lacks.values()):
                raise UsageError(f"{source}: {lacks[months[0]]}")
        except (AccessRefused, UsageError) as error:
            if sources:
                raise
            left_out.append(str(error))
            continue
        plan[source] = [month for month, lack in lacks.items() if not lack]
    return plan, left_out
