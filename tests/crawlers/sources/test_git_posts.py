"""Repositories of dated texts: every shipped entry on the simulated GitHub, and their traps."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import ItemUnavailable, MalformedInput, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Item
from crawlers.git import entries
from crawlers.git.entries import Entry, read_entries
from crawlers.git_posts import EARLIEST, fetch_month
from crawlers.registry import list_sources, load_crawler
from simulator import posts
from simulator.fast_import import commit, write_file
from simulator.server import Web, serve_sites
from simulator.sites import github
from simulator.sites.github import Site
from simulator.world import World
from tests.crawlers.conftest import by_id, count_drops, documents_of

FIRST = Month("2025-01")  # all repositories exist
MONTH = FIRST + 1
WORLD = World(0, FIRST, FIRST + 2)
NAMES = entries.list_names()
ENTRIES = read_entries()
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve_sites([Site(WORLD)]) as running:
        yield running


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mirrors")


def crawl(web: Web, folder: Path, name: str, month: Month = MONTH) -> list[Item]:
    settings = Settings(
        home=str(folder), work_dir=folder, sites=dict(web.urls), request_interval_s=0
    )
    crawler = load_crawler(f"git_posts:{name}")
    fetcher = crawler.INFO.open_fetcher(settings)
    return list(crawler.fetch_month(month, CrawlContext(settings, fetcher)))


def test_default_runs_have_each_repository_as_a_source() -> None:
    assert len(NAMES) >= 12
    assert {f"git_posts:{name}" for name in NAMES} < {*list_sources()}
    assert "git_posts" not in list_sources()
    assert len({entry.category for entry in ENTRIES.values()}) >= 4
    with pytest.raises(UnknownName, match="git_posts:rust_blog"):
        load_crawler("git_posts:rust_blogs")


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_gives_the_texts_of_a_month_as_they_were_at_its_end(
    name: str, web: Web, mirrors: Path
) -> None:
    items = crawl(web, mirrors, name)
    documents = documents_of(items)
    expected = [posts.text_of(WORLD, name, MONTH, number) for number in range(posts.DOCUMENTS)]
    entry = ENTRIES[name]
    for text in expected:
        assert any(text in document.text for document in documents)
    assert len(documents) == len(expected)
    assert not any(posts.EDIT in document.text for document in documents)
    assert all(document.event_time in MONTH for document in documents)
    assert all(document.text_as_of < MONTH.end for document in documents)
    assert all(document.licence == entry.licence for document in documents)
    assert {document.title for document in documents} == {
        WORLD.story(MONTH, f"git_posts:{name}", number).title for number in range(posts.DOCUMENTS)
    }
    is_in_header = all(rule.startswith("field:") for rule in entry.date)
    assert count_drops(items) == ({"no_date": 1} if is_in_header else {})


def test_every_field_of_a_document(web: Web, mirrors: Path) -> None:
    documents = by_id(crawl(web, mirrors, "rust_blog"))
    document = documents["rust-lang/blog.rust-lang.org:content/2025-02-07-story-2025-02-1.md"]
    assert document.event_time == dt.datetime(2025, 2, 7, tzinfo=dt.UTC)
    assert document.text_as_of == dt.datetime(2025, 1, 10, tzinfo=dt.UTC)  # it was scheduled
    assert (document.date_kind, document.language, document.category) == ("published", "en", "blog")
    assert re.fullmatch("[0-9a-f]{40}", document.version_id or "")
    assert re.fullmatch(
        r"https://github.com/rust-lang/blog.rust-lang.org/blob/[0-9a-f]{40}/content/\S+\.md",
        document.url,
    )
    assert document.extra["stated_day"] == "2025-02-07"


# A history by hand, which the rules below read. Days are of 2025-02 if not stated.


def history(*commits: tuple[dt.datetime, list[bytes]]) -> Iterator[bytes]:
    yield commit("main", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), write_file("LICENSE", "CC0 1.0"))
    for moment, changes in commits:
        yield commit("main", moment, *changes)


def at(month: int, day: int) -> dt.datetime:
    return dt.datetime(2025, month, day, 12, tzinfo=dt.UTC)


def post(path: str, date: str, text: str = "A text.") -> bytes:
    return write_file(path, f"---\ntitle: T\ndate: {date}\n---\n{text}\n")


def read(
    web: Web,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: list[tuple[dt.datetime, list[bytes]]],
    **fields: object,
) -> list[Item]:
    """Crawl 2025-02 of an entry whose repository has these commits."""
    given = {
        "title": "Posts", "repository": "someone/posts", "folders": ["*.md"],
        "match": r"posts/(?P<id>[^/]+)\.md", "date": ["field:date"], "category": "blog",
        "licence": "CC0-1.0", "attribution": "someone", "licence_file": "LICENSE",
        "licence_says": "CC0", "example": "posts/{name}.md",
    }  # fmt: skip
    entry = Entry.model_validate({**given, **fields})
    monkeypatch.setattr("crawlers.git_posts.read_entries", lambda: {"posts": entry})
    monkeypatch.setattr(github, "read_series", lambda: {"someone/posts": ()})
    monkeypatch.setattr(github, "history", lambda *_: history(*commits))
    with serve_sites([Site(WORLD)]) as own:
        settings = Settings(
            home=str(folder), work_dir=folder, sites=dict(own.urls), request_interval_s=0
        )
        info = load_crawler("git_posts:rust_blog").INFO
        context = CrawlContext(settings, info.open_fetcher(settings), subset="posts")
        return list(fetch_month(MONTH, context))


def names(items: list[Item]) -> set[str]:
    return {document.native_id.partition(":")[2] for document in documents_of(items)}


def test_a_text_belongs_to_the_month_of_its_stated_day(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = MONTH.start - EARLIEST - DAY
    commits = [
        (long_ago, [post("posts/known.md", "2025-02-10")]),  # was there long before
        (at(1, 5), [post("posts/scheduled.md", "2025-02-10")]),
        (at(2, 3), [post("posts/zone.md", "2025-02-28T23:30:00-05:00")]),
        (at(2, 4), [post("posts/slashes.md", "2025/2/9"), post("posts/other.md", "2025-01-31")]),
        (at(2, 5), [write_file("posts/capital.md", "---\nDate: '2025-02-05'\n---\nA text.\n")]),
        (at(2, 6), [write_file("posts/toml.md", "+++\ndate = 2025-02-06\n+++\nA text.\n")]),
        (at(2, 7), [post("posts/impossible.md", "2025-02-30")]),
        (at(3, 9), [post("posts/late.md", "2025-02-11")]),
        (at(3, 11), [post("posts/too_late.md", "2025-02-11")]),
    ]
    items = read(web, tmp_path, monkeypatch, commits, lag_days=10)
    assert names(items) == {"scheduled", "zone", "slashes", "capital", "toml", "late"}
    assert count_drops(items) == {"no_date": 1}
    assert "late" not in names(read(web, tmp_path / "no", monkeypatch, commits))


def test_a_landed_text_counts_when_it_came(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [
        (at(2, 3), [post("posts/found_late.md", "2024-11-30")]),
        (at(2, 4), [post("posts/within_a_week.md", "2025-01-30")]),
        (at(3, 4), [post("posts/next_month.md", "2025-02-10")]),
    ]
    items = read(web, tmp_path, monkeypatch, commits, is_landed=True)
    assert names(items) == {"found_late"}


def test_a_file_that_moves_is_no_new_document(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "drafts/one.md", "posts/one.md"
    commits = [
        (at(1, 5), [post(old, "x"), post("posts/two.md", "x", "As it was.")]),
        (at(2, 3), [f"R {old} {new}\n".encode(), post("posts/three.md", "x")]),
        (at(2, 4), [b"R posts/three.md drafts/three.md\n"]),
        (at(2, 5), [post("posts/gone.md", "x")]),
        (at(2, 6), [b"D posts/gone.md\n"]),
        (at(3, 5), [post("drafts/three.md", "x", "Changed later.")]),
    ]
    items = read(web, tmp_path, monkeypatch, commits, date=["commit"], match=r"\w+/(?P<id>\w+)\.md")
    [document] = documents_of(items)
    assert document.native_id == "someone/posts:three"
    assert document.text == "A text."
    assert document.date_kind == "committed"


def test_posts_whose_day_moves_from_their_name_to_their_header(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Rust blog did so in March 2025: all files moved, with ``date`` and later ``path``."""
    entry = ENTRIES["rust_blog"]
    old, new = "posts/2025-02-03-one.md", "content/one.md"
    index = write_file("content/_index.md", "+++\ntitle = 'Blog'\n+++\n")
    dated = write_file(new, "+++\ndate = 2025-02-03\n+++\nMoved.\n")
    past = write_file("content/two.md", "+++\npath = '2024/12/31/two'\n+++\nOlder.\n")
    commits = [
        (at(2, 3), [write_file(old, "A text.")]),
        (at(2, 20), [f"D {old}\n".encode(), dated, past, index]),
    ]
    rules = {"match": entry.match, "date": entry.date, "folders": entry.folders}
    items = read(web, tmp_path, monkeypatch, commits, **rules)
    [document] = documents_of(items)
    assert document.text == "Moved."
    assert count_drops(items) == {}


def test_without_the_licence_nothing_is_kept(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [
        (at(2, 3), [post("posts/one.md", "2025-02-03"), post("posts/two.md", "2025-02-04", "CC0")]),
    ]
    items = read(web, tmp_path / "1", monkeypatch, commits, licence_says="MIT")
    assert count_drops(items) == {"licence": 2}
    items = read(web, tmp_path / "2", monkeypatch, commits, licence_file="COPYING")
    assert count_drops(items) == {"licence": 2}
    items = read(web, tmp_path / "3", monkeypatch, commits, document_says="CC0")
    assert names(items) == {"two"}
    assert count_drops(items) == {"licence": 1}


@pytest.mark.parametrize(
    ("name", "document", "is_kept"),
    [
        ("rustsec", 'id = "RUSTSEC-2024-0001"\ndate = "2024-01-01"\n# A crate', True),
        ("rustsec", 'id = "RUSTSEC-2024-0001"\nlicense = "CC-BY-4.0"\n# A crate', False),
        ("python_peps", "Title: T\nCopyright\nThis document is placed in the public\ndomain", True),
        ("python_peps", "Title: T\nOpen Publication License", False),
    ],
)
def test_documents_with_a_licence_of_their_own(name: str, document: str, is_kept: bool) -> None:
    assert (re.search(ENTRIES[name].document_says or "", document) is not None) == is_kept


def test_links_and_large_and_binary_files_are_counted(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [
        (
            at(2, 3),
            [
                write_file("posts/link.md", "/etc/passwd", mode="120000"),
                write_file("posts/large.md", "x" * (10**6 + 1)),
                write_file("posts/binary.md", "a\0b"),
                write_file("posts/.gitmodules", ""),
                f"M 160000 {'1' * 40} posts/module.md\n".encode(),
            ],
        ),
    ]
    items = read(web, tmp_path, monkeypatch, commits)
    assert documents_of(items) == []
    assert count_drops(items) == {"unsafe_path": 1, "too_large": 1, "binary": 1}


def test_a_submodule_in_the_place_of_a_file_removes_it(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"M 160000 {'1' * 40} posts/{{}}.md\n"
    before = [post("posts/file.md", "2025-02-03"), module.format("module").encode()]
    after = [b"D posts/module.md\n", post("posts/module.md", "2025-02-03", "A file now.")]
    after += [b"D posts/file.md\n", module.format("file").encode()]
    items = read(web, tmp_path, monkeypatch, [(at(2, 3), before), (at(2, 5), after)])
    assert names(items) == {"module"}


def test_a_text_that_is_copied_before_its_old_file_goes_is_kept(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [
        (at(2, 2), [post("drafts/one.md", "x"), post("drafts/two.md", "x")]),
        (at(2, 3), [post("posts/one.md", "x", "Copied."), post("posts/two.md", "x")]),
        (at(2, 4), [b"D drafts/one.md\n", b"D drafts/two.md\n"]),
        (at(2, 5), [b"D posts/two.md\n"]),
        (at(3, 1), [b"D posts/one.md\n"]),
    ]
    items = read(web, tmp_path, monkeypatch, commits, date=["commit"], match=r"\w+/(?P<id>\w+)\.md")
    [document] = documents_of(items)
    assert document.text == "Copied."
    assert names(items) == {"one"}


def test_fields_of_other_fields_and_blocks_are_not_read(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = (
        "---\nhistory:\n  date: 2019-01-01\n  title: Old\ntitle: T\ndate: 2025-02-03\n---\nText."
    )
    block = "---\ntitle: >-\n  Long\n  title\ndate: 2025-02-03\n---\n# Heading\n\nText."
    files = [write_file("posts/nested.md", nested), write_file("posts/block.md", block)]
    found = by_id(read(web, tmp_path, monkeypatch, [(at(2, 3), files)]))
    titles = {native_id.partition(":")[2]: each.title for native_id, each in found.items()}
    assert titles == {"nested": "T", "block": "Heading"}


@pytest.mark.parametrize(
    "header",
    [
        '---\n"date": "2025-02-03"\n---\n',
        "---\n'date' : 2025-02-03\n---\n",
        "---\ndate: 2025-02-03\n...\n",
        "---\ndate: 3 February 2025\n---\n",
        '+++\ndate = "February 3, 2025"\n+++\n',
        '{\n "title": "T",\n "menu": {"date": "2019-01-01"},\n "Date": "2025-02-03"\n}\n',
        '{"date": "3 February 2025"}\n',
    ],
)
def test_a_day_in_every_form_of_header(
    header: str, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [(at(2, 3), [write_file("posts/one.md", f"{header}A text.\n")])]
    [document] = documents_of(read(web, tmp_path, monkeypatch, commits))
    assert document.event_time == dt.datetime(2025, 2, 3, tzinfo=dt.UTC)
    assert document.text == "A text."


def test_a_name_that_is_not_utf8_has_its_bytes_in_the_address(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"---\ndate: 2025-02-03\n---\nA text.\n"
    change = b'M 100644 inline "posts/\\377 \\303\\251.md"\ndata %d\n%s' % (len(content), content)
    [document] = documents_of(read(web, tmp_path, monkeypatch, [(at(2, 3), [change])]))
    assert document.url.endswith("/posts/%ff%20%C3%A9.md")
    assert document.native_id == r"someone/posts:\xff é"


def test_a_mail_map_of_the_repository_is_not_needed(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git reads .mailmap of the last commit for a log, and a partial clone has no such file."""
    commits = [
        (at(2, 3), [post("posts/one.md", "2025-02-03"), write_file(".mailmap", "A <a@b> <c@d>")])
    ]
    assert names(read(web, tmp_path, monkeypatch, commits)) == {"one"}


def test_before_the_first_commit_there_is_no_month(web: Web, mirrors: Path) -> None:
    with pytest.raises(ItemUnavailable, match="no commit before 2024-11"):
        crawl(web, mirrors, "spdx_minutes", Month("2024-10"))
    context = CrawlContext(
        Settings(), load_crawler("git_posts:rust_blog").INFO.open_fetcher(Settings())
    )
    with pytest.raises(UsageError, match="name a repository"):
        list(fetch_month(MONTH, context))


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_matches_its_example(name: str) -> None:
    entry = ENTRIES[name]
    given = {"year": "2025", "month": "02", "day": "07", "name": "a-name", "number": "0123"}
    found = re.fullmatch(entry.match, entry.example.format(**given))
    assert found
    if entry.date[0] == "path":
        assert [found[part] for part in ("year", "month", "day")] == ["2025", "02", "07"]
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.repository)
    assert all(rule in ("path", "commit") or rule.startswith("field:") for rule in entry.date)


@pytest.mark.parametrize("text", ["title: x", "- a list", "title: [", "{title: x, colour: red}"])
def test_a_wrong_entry_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(MalformedInput, match=r"mine\.yaml"):
        entries._read(file)
