"""Posts of subreddits with text, with a key that Reddit approved: ``/r/<name>/new`` of its API.

``TIDEMARK_TOKENS__REDDIT`` is a bearer token, which its owner fetches from Reddit and which lasts a
day. A list ends at about 1,000 posts and has no range of time, so a month is what the list still
has. Posts that were removed, or edited after the month, are dropped, and no user names are kept.
The shape of the responses is Reddit's documentation (https://www.reddit.com/dev/api); none has been
recorded here.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import AccessRefused
from core.month import Month
from crawlers.apis.fields import Fields, show
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo
from crawlers.text.cleaning import clean
from crawlers.web.fetcher import Fetched, decode, get_list

SITE = "reddit"
INFO = SourceInfo(
    name="reddit",
    title="Reddit: posts with text",
    licence="LicenseRef-author",
    language="en",
    category="forum",
    sites={SITE: "https://oauth.reddit.com"},
    permission=(
        "Reddit's terms ask for an approved key, forbid training of models, and ask to delete what "
        "users delete; hackernews and stackexchange are open and stand in for it"
    ),
)
SUBREDDITS = ("AskHistorians", "WritingPrompts", "explainlikeimfive", "science")
PAGE_SIZE = 100
MAX_PAGES = 20  # a list ends after 10


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the month's posts by subreddit, the newest first; samples are in random order."""
    if context.fetcher.token(SITE) is None:
        raise AccessRefused("reddit needs a bearer token: set TIDEMARK_TOKENS__REDDIT")
    for name in SUBREDDITS:
        listed = _list_posts(name, month, context)
        yield from context.sample_list(listed, lambda each: each.native_id, lambda each: [each])


def _list_posts(name: str, month: Month, context: CrawlContext) -> Iterator[Document | Drop]:
    """Yield the newest posts of a subreddit, page by page, those of the month as documents."""
    token = context.fetcher.token(SITE)
    assert token is not None  # noqa: S101 - checked above
    headers = {"Authorization": f"Bearer {token.get_secret_value()}"}
    after = ""
    for _ in range(MAX_PAGES):
        params: dict[str, str | int] = {"limit": PAGE_SIZE, "raw_json": 1}
        params |= {"after": after} if after else {}
        page = get_list(
            context.fetcher, SITE, f"/r/{name}/new", params, _is_busy,
            headers=headers, not_before=month.end,
        )  # fmt: skip
        data = Fields.of(f"{SITE}: {page.url}", decode(page)).inner("data")
        for row in data.need("children", data.rows("children"), "a list"):
            yield _examine(row.inner("data"), month, page)
        after = data.text("after") or ""
        if not after:
            return


def _is_busy(fetched: Fetched) -> bool:
    response = Fields.of(fetched.url, decode(fetched))
    return not response.values or "error" in response.values


def _examine(post: Fields, month: Month, page: Fetched) -> Document | Drop:
    """Return a post as a document, or why it is left out."""
    name = post.text("name")
    posted = post.epoch("created_utc")
    if name is None or posted is None:
        return Drop(post.where, "parse_error", show(post.values))
    if posted not in month:
        return Drop(name, "outside_month", posted.isoformat())
    text = post.text("selftext")
    title = post.text("title")
    if text in ("[removed]", "[deleted]") or post.text("removed_by_category"):
        return Drop(name, "deleted")
    edited = post.epoch("edited") or posted  # false, or a time
    if edited >= month.end:
        return Drop(name, "edited_later", edited.isoformat())
    if text is None or title is None:
        return Drop(name, "empty", "a link or a picture")
    url = f"https://www.reddit.com{post.text('permalink') or '/'}"
    return Document(
        native_id=name,
        version_id=edited.isoformat(),
        text=text,
        title=" ".join(clean(title).split()),
        url=url,
        event_time=posted,
        date_kind="created",
        text_as_of=edited,
        retrieved_at=page.retrieved_at,
        licence=INFO.licence,
        attribution=f"Reddit, {url}",
        cluster_id=f"post:{name}",
        extra={"subreddit": post.text("subreddit") or ""},
    )
