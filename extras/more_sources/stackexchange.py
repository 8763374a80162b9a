"""Stack Exchange: the month's questions, each with its answers from within the month.

A document belongs to the month of its question. A question that was edited after the month's end is
dropped (``edited_later``), and an answer that was edited later is left out. Of a large site, a
sample of time spans is read, with some 50 questions each. So a month takes about a hundred requests
(300 requests a day are free). Spans of all sites alternate, so that small sites are represented.
User names are left out; the attribution links to the post.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from core.month import Period
from crawlers.apis.fields import Fields
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Item,
    Quota,
    Repeat,
    SourceInfo,
)
from crawlers.text.articles import one_line, post_to_text
from extras.more_sources.stackexchange_api import BASE_URL, SITE, Found, StackExchange

INFO = SourceInfo(
    name="stackexchange",
    title="Stack Exchange: questions and answers on technology, mathematics, health and films",
    licence="CC-BY-SA-4.0",
    language="en",
    category="questions",
    sites={SITE: BASE_URL},
    monthly_bytes=6_000_000,
    subset_kind="site",
    whole_months=None,
)
# Host by the API's name of a site, which is the category of its documents.
SITES: Mapping[str, str] = {
    "stackoverflow": "stackoverflow.com",  # technology
    "math": "math.stackexchange.com",
    "medicalsciences": "medicalsciences.stackexchange.com",  # health
    "movies": "movies.stackexchange.com",
    "superuser": "superuser.com",  # technology
    "fitness": "fitness.stackexchange.com",  # health
    "scifi": "scifi.stackexchange.com",  # films
}
SPAN_QUESTIONS = 75  # maximum mean number of questions per span, so that most spans fit one page
BATCH = 100  # questions per request for answers; the API allows no more
# Posts before this date are under CC BY-SA 3.0: https://stackoverflow.com/help/licensing.
_LICENCE_4_SINCE = dt.datetime(2018, 5, 2, tzinfo=dt.UTC)
_LICENCE = re.compile(r"CC BY-SA (\d\.\d)")
_TAG = re.compile(r"[\w.#+-]{1,50}")


@dataclass(frozen=True)
class Span:
    """A time span on one site: [start, end) in seconds since 1970."""

    site: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """Return a unique key of the span, from which its random rank is computed."""
        return f"{self.site}/{self.start}-{self.end}"


@dataclass(frozen=True)
class Post:
    """A question or an answer as of the month's end."""

    id: int
    text: str
    created_at: dt.datetime
    text_as_of: dt.datetime
    licence: str


@dataclass(frozen=True)
class Question:
    """A question that may become a document, with its metadata."""

    site: str
    post: Post
    title: str
    tags: tuple[str, ...]
    has_answers: bool
    retrieved_at: dt.datetime

    @property
    def native_id(self) -> str:
        """Return the question's native id, ``site:number``."""
        return f"{self.site}:{self.post.id}"


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield questions with answers by site and time; sampled crawls use a random order."""
    api = StackExchange(context.fetcher)
    quota = context.quota()
    seen: set[str] = set()
    for spans in _rounds(api, month, context):
        if quota.is_full:
            return  # the remaining spans are not listed, and yield no items
        questions: list[Question] = []
        for span in spans:
            for row in api.list_questions(span.site, span.start, span.end):
                item = _read_question(row, span, month)
                if item is None:
                    continue
                if item.native_id in seen:
                    yield Repeat(item.native_id, "on two pages of the list")
                elif isinstance(item, Drop):
                    yield item
                else:
                    questions.append(item)
                seen.add(item.native_id)
        if context.is_sampled:
            questions.sort(key=lambda question: context.rank(question.native_id))
        yield from _with_answers(api, questions, month, context, quota)


def _rounds(api: StackExchange, month: Period, context: CrawlContext) -> list[list[Span]]:
    """Return the spans of time to list in each round; in a sample, one of each site."""
    sites = (context.subset,) if context.subset else SITES
    by_site = [_spans(api, site, month) for site in sites]
    if not context.is_sampled:
        return [[span] for spans in by_site for span in spans]
    for spans in by_site:
        spans.sort(key=lambda span: context.rank(span.key))
    return [[span for span in spans if span] for spans in zip_longest(*by_site)]


def _spans(api: StackExchange, site: str, month: Period) -> list[Span]:
    """Cut a month into 2**n equal time spans, so that few more questions do not move the spans."""
    start, end = (int(moment.timestamp()) for moment in (month.start, month.end))
    total = api.count_questions(site, start, end)
    if not total:
        return []
    count = 1 << (-(-total // SPAN_QUESTIONS) - 1).bit_length()
    bounds = [start + (end - start) * number // count for number in range(count + 1)]
    return [Span(site, *pair) for pair in zip(bounds, bounds[1:], strict=False)]


def _read_question(found: Found, span: Span, month: Period) -> Question | Drop | None:
    """Return a question or a Drop; None for a question that belongs to the next span."""
    row, given_at = found
    post = _read_post(row, "question_id")
    if post is None:
        number = row.integer("question_id")
        name = f"{span.key}: {row.where}" if number is None else f"{span.site}:{number}"
        return Drop(name, "parse_error", "no id, date, text")
    native_id = f"{span.site}:{post.id}"
    if post.created_at not in month:
        return Drop(native_id, "outside_month", f"created {post.created_at.isoformat()}")
    if not span.start <= post.created_at.timestamp() < span.end:
        return None  # the API's lists include the second ``span.end``
    if post.text_as_of >= month.end:
        return Drop(native_id, "edited_later", f"edited {post.text_as_of.isoformat()}")
    return Question(
        site=span.site,
        post=post,
        title=one_line(row.text("title") or ""),
        tags=tuple(filter(_TAG.fullmatch, row.texts("tags"))),
        has_answers=row.integer("answer_count") != 0,
        retrieved_at=given_at,
    )


def _read_post(row: Fields, id_field: str) -> Post | None:
    """Return the post in a row; None if it lacks an id, a date or a body."""
    number = row.integer(id_field)
    body = row.text("body")
    created_at = row.epoch("creation_date")
    if number is None or created_at is None or body is None:
        return None
    licence = _LICENCE.fullmatch(row.text("content_license") or "")
    by_date = "4.0" if created_at >= _LICENCE_4_SINCE else "3.0"
    version = licence[1] if licence else by_date
    return Post(
        id=number,
        text=post_to_text(body),
        created_at=created_at,
        text_as_of=row.epoch("last_edit_date") or created_at,
        licence=f"CC-BY-SA-{version}",
    )


def _with_answers(
    api: StackExchange,
    questions: Sequence[Question],
    month: Period,
    context: CrawlContext,
    quota: Quota,
) -> Iterator[Item]:
    """Yield questions with the answers that existed at the month's end."""
    size = context.limit or max(len(questions), 1)  # a batch has at most ``limit`` questions
    for start in range(0, len(questions), size):
        batch = questions[start : start + size]
        answers = {} if quota.is_full else _answers(api, batch)
        for question in batch:
            if quota.is_full:
                yield Drop(question.native_id, "sample_cap")
            else:
                of_month = [
                    answer
                    for answer in answers.get(question.native_id, [])
                    if answer.created_at < month.end and answer.text_as_of < month.end
                ]
                num_later = len(answers.get(question.native_id, [])) - len(of_month)
                yield quota.take(_document(question, of_month, num_later))


def _answers(api: StackExchange, batch: Sequence[Question]) -> dict[str, list[Post]]:
    """Return the answers to each question, oldest first."""
    found: dict[str, dict[int, Post]] = {question.native_id: {} for question in batch}
    for site in dict.fromkeys(q.site for q in batch):
        ids = [q.post.id for q in batch if q.site == site and q.has_answers]
        for start in range(0, len(ids), BATCH):
            for row, _ in api.list_answers(site, ids[start : start + BATCH]):
                answer = _read_post(row, "answer_id")
                wanted = f"{site}:{row.integer('question_id')}"
                if answer is not None and wanted in found:
                    found[wanted][answer.id] = answer
    return {
        native_id: sorted(answers.values(), key=lambda answer: (answer.created_at, answer.id))
        for native_id, answers in found.items()
    }


def _document(question: Question, answers: Sequence[Post], num_later: int) -> Document:
    """Return a question and its answers as one document."""
    host = SITES.get(question.site, f"{question.site}.stackexchange.com")
    posts = [question.post, *answers]
    url = f"https://{host}/questions/{question.post.id}"
    addresses = [url, *(f"https://{host}/a/{answer.id}" for answer in answers)]
    return Document(
        native_id=question.native_id,
        version_id=None,
        text="\n\n".join(post.text for post in posts),
        is_plain=True,
        title=question.title,
        url=url,
        event_time=question.post.created_at,
        date_kind="created",
        text_as_of=max(post.text_as_of for post in posts),
        retrieved_at=question.retrieved_at,
        licence=" AND ".join(sorted({post.licence for post in posts})),
        attribution=f"contributors of {host}: {' '.join(addresses)}",
        cluster_id=f"question:{question.native_id}",
        category=question.site,
        extra={
            "site": question.site,
            "tags": list(question.tags),
            "num_answers": len(answers),
            "num_answers_later": num_later,  # answers posted or edited after the month
        },
    )
