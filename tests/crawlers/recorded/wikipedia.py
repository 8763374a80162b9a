"""Wikipedia: whole articles, compared with mwparserfromhell, and answers of the API."""

import contextlib
import json
import re
from pathlib import Path

import mwparserfromhell
import pytest
from mwparserfromhell.nodes import Node, Template

from core.errors import SourceChanged
from core.settings import Settings
from crawlers import wikipedia_new
from crawlers.apis.mediawiki import SITE, MediaWiki, Revision
from crawlers.text.cleaning import clean
from crawlers.text.defects import count_holes, count_markup
from crawlers.text.wikitext import CLOSING_SECTIONS, is_redirect, to_text
from simulator.server import Request, Response, as_json
from tests.crawlers.recorded import Case, Replay, replay

MAX_HOLES = 0.05  # an article
MIN_KEPT = 0.98  # share of the sentences that mwparserfromhell finds
MIN_WORDS = 5  # of a sentence that counts
_HIDDEN = ("file", "image", "category", "datei", "bild", "kategorie", "fichier", "catégorie")
_TEMPLATE = "\ufdd0"


def check_some_articles(folder: Path, _: Settings) -> None:
    check_texts(sorted(folder.glob("*.txt"))[::9])


def check_articles(folder: Path, _: Settings) -> None:
    check_texts(sorted(folder.glob("*.txt")))


def check_texts(paths: list[Path]) -> None:
    articles = {path.name: path.read_text(encoding="utf-8") for path in paths}
    num_holes = num_kept = num_sentences = 0
    for name, wikitext in sorted(articles.items()):
        if is_redirect(wikitext):
            continue
        language = "de" if "[[Kategorie:" in wikitext else "en"
        text = clean(to_text(wikitext, language))
        assert count_markup(text) == 0, name
        assert not re.search(r"\(\s*[,;:]*\s*\)|\w [,.](?:\s|$)|  ", text), name
        num_holes += count_holes(text)
        found = f" {_words(text)} "
        sentences = peer_sentences(wikitext, language)
        kept = [sentence for sentence in sentences if f" {sentence} " in found]
        assert len(kept) >= 0.9 * len(sentences) - 1, (name, set(sentences) - set(kept))
        num_kept += len(kept)
        num_sentences += len(sentences)
    assert num_holes <= MAX_HOLES * len(articles)
    assert num_kept >= MIN_KEPT * num_sentences > 0


def peer_sentences(wikitext: str, language: str) -> list[str]:
    """Return the sentences without a template that mwparserfromhell finds, outside of tables."""
    code = mwparserfromhell.parse(wikitext)
    gone: list[Node] = [
        *code.filter_tags(matches=lambda node: node.tag in ("ref", "table", "gallery"))
    ]
    gone += code.filter_wikilinks(
        matches=lambda node: str(node.title).strip().lower().partition(":")[0] in _HIDDEN
    )
    for node in [*gone, *code.filter_templates(recursive=False)]:
        with contextlib.suppress(ValueError):  # it was in another one
            code.replace(node, _TEMPLATE if isinstance(node, Template) else "")
    closing = {*CLOSING_SECTIONS["en"], *CLOSING_SECTIONS[language]}
    sentences = []
    for line in str(code.strip_code()).split("\n"):
        if line.strip().lower() in closing:
            break
        # A parser error leaves a table, or the braces of a template.
        if not re.search(r"\||\{|\}", line):
            sentences += re.split(r"(?<=[.!?])[\"”)]*\s+", line)
    words = [_words(each) for each in sentences if _TEMPLATE not in each]
    return [each for each in words if each.count(" ") >= MIN_WORDS - 1]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def check_revision(path: Path, settings: Settings) -> None:
    """Read the answer's page; the recorded request asked for no ids, and ours always does."""
    recorded = json.loads(path.read_bytes())
    [page] = recorded["query"]["pages"]
    [row] = page["revisions"]
    row["revid"] = 831_083_157

    def respond(request: Request) -> Response:
        is_more = request.arg("rvcontinue") == recorded["continue"]["rvcontinue"]
        return as_json({"batchcomplete": True} if is_more else recorded)

    with replay(settings, Replay((SITE,), respond)) as (own, web):
        revisions = MediaWiki(wikipedia_new.INFO.open_fetcher(own)).texts([row["revid"]])
    [revision] = revisions.values()
    assert isinstance(revision, Revision) and revision.page_id == page["pageid"]
    assert revision.wikitext == row["slots"]["main"]["content"]
    assert f"{revision.timestamp:%Y-%m-%dT%H:%M:%SZ}" == row["timestamp"]
    assert len([1 for _, _, target in web.requests if "api.php" in target]) == 2


def check_error(path: Path, settings: Settings) -> None:
    recorded = json.loads(path.read_bytes())
    [error] = recorded["errors"]
    with replay(settings, Replay((SITE,), lambda _: as_json(recorded))) as (own, _):
        wiki = MediaWiki(wikipedia_new.INFO.open_fetcher(own))
        with pytest.raises(SourceChanged, match=error["code"]):
            wiki.texts([1])


CASES = [
    Case("wikipedia/wikitext", check_some_articles, "long"),
    Case("wikipedia/wikitext", check_articles, "slow"),
    Case("wikipedia/api/wikitext.json", check_revision),
    Case("wikipedia/api/api_error.json", check_error),
]
