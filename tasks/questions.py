"""Crawling of forecasting questions: which sources, and the task that walks over one."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.claims import Claims
from core.errors import AccessRefused, UsageError
from core.month import Month, require_complete
from core.permissions import require_permission
from core.questions import QuestionSeal
from core.settings import Settings, prefect_server
from core.storage import Store
from crawlers.questions.contract import list_question_sources, load_question_crawler
from crawlers.questions.crawl import crawl_questions, require_token
from tasks.crawling import may_pass, take_slot, with_tokens
from tasks.observe import observe
from tasks.server import run_log
from tasks.stopping import go_on
from tasks.tracing import span


def plan_question_crawl(
    sources: Sequence[str] | None, months: Sequence[Month], settings: Settings
) -> tuple[dict[str, list[Month]], list[str]]:
    """Return the months that there are by source, and why other sources are left out.

    Args:
        sources: None means all that may be crawled.
        months: of resolution; all over.
        settings: for tokens, and the data root, where permissions are recorded.

    Raises:
        UnknownName: no such source.
        FutureMonth: the last month is not over.
        AccessRefused: a source that was asked for by name lacks its permission or token.
        UsageError: none of the months is to be had of a source that was asked for by name.
    """
    require_complete(max(months))
    plan, left_out = {}, []
    for source in sources or list_question_sources():
        info = load_question_crawler(source).INFO
        try:
            require_permission(Store(settings.home), source, info.permission)
            require_token(info, settings_with_tokens(source, settings))
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


def settings_with_tokens(source: str, settings: Settings) -> Settings:
    """Return settings with the tokens of a source that the server, if there is one, holds."""
    if not prefect_server():
        return settings
    return with_tokens(load_question_crawler(source).INFO.sites, settings)


def crawl(
    source: str, months: Sequence[Month], settings: Settings, replace: bool = False
) -> list[QuestionSeal]:
    """Do ``crawl_questions``, with what a Prefect server adds; one process at a time does."""
    store = Store(settings.home, settings.scratch)
    claims, name = Claims(store), f"questions/{source}"
    turnstile = take_slot if prefect_server() else None
    ready = settings_with_tokens(source, settings)
    while True:
        with claims.hold([name]) as ours:
            if ours:
                return crawl_questions(
                    source, months, store, ready, replace=replace, turnstile=turnstile
                )
        run_log().warning("waiting: another process crawls the questions of %s", source)
        claims.wait(name, is_done=_never)


def _never() -> bool:
    """Only the other crawl's end ends the wait for it, or that of our own flow run."""
    go_on()
    return False


@task(
    task_run_name="crawl questions of {source}",
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=may_pass,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def crawl_question_source(
    source: str, months: list[Month], settings: Settings
) -> list[QuestionSeal]:
    """Seal the months of one source; those that are sealed already are left alone."""
    observe()
    with span("questions", source=source):
        return crawl(source, months, settings)
