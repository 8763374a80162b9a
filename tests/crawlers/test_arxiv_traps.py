"""What trips a crawler of arXiv, a test for each trap."""

from __future__ import annotations

import gzip
import io
import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import ItemUnavailable, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers import arxiv_feeds, pacing
from crawlers.archives import read_package
from crawlers.arxiv import CATEGORIES, INFO, fetch_month
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, Repeat
from crawlers.http import Fetcher
from crawlers.latex import LatexReader, read_latex
from crawlers.latex_source import SUFFIXES, choose_root, decode_files
from simulator.server import Fault, Web, serve_sites
from simulator.sites import arxiv as simulated
from simulator.world import World

from .conftest import marked, token_f1

MONTH = Month("2023-02")
STORIES = 8
HEAD = "\\documentclass{article}\\begin{document}\\section{Introduction}\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def site() -> simulated.Site:
    return simulated.Site(World(0, Month("2023-01"), Month("2023-03"), stories_per_month=STORIES))


@pytest.fixture
def web(site: simulated.Site) -> Iterator[Web]:
    with serve_sites([site]) as web:
        yield web


@pytest.fixture(scope="module")
def reader() -> Iterator[LatexReader]:
    with LatexReader(time_limit_s=3) as reader:
        yield reader


def crawl(web: Web, settings: Settings, month: Month = MONTH, **choices: Any) -> list[Item]:
    settings = settings.model_copy(update={"sites": web.urls})
    fetcher = Fetcher(settings, INFO.sites, 0, INFO.redirect_hosts)
    return list(fetch_month(month, CrawlContext(settings, fetcher, **choices)))


def documents(items: list[Item]) -> dict[str, Document]:
    return {item.native_id: item for item in items if isinstance(item, Document)}


def drops(items: list[Item]) -> dict[str, str]:
    return {item.native_id: item.reason for item in items if isinstance(item, Drop)}


def asked(web: Web, path: str) -> list[str]:
    return [target for _, _, target in web.requests if target.startswith(path)]


def tar_of(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def serve_paper(web: Web, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Let the first paper's source be these bytes."""
    web.faults.append(Fault("status", "arxiv", "/src/2302.00001v1", 9, 200, headers or {}, body))


# Choosing papers


def test_version_one_is_taken_for_later_versions_leak_later_text(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    found = documents(crawl(web, settings))
    revised = [key for key in found if len(site.papers[key].versions) > 1]
    assert revised
    assert all("This version was revised" not in found[key].text for key in revised)
    assert all(target.endswith("v1") for target in asked(web, "/src/"))


def test_oai_cannot_select_by_submission_date(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    """Its datestamp is that of the last change: a revised paper is in a later month's list."""
    found = documents(crawl(web, settings))
    later = [key for key in found if site.papers[key].datestamp >= MONTH.end.date()]
    assert later
    assert all(found[key].event_time in MONTH for key in later)


def test_a_month_ends_on_its_last_day_not_on_the_28th(web: Web, settings: Settings) -> None:
    found = documents(crawl(web, settings, Month("2023-01")))
    assert max(document.event_time.day for document in found.values()) == 31


def test_an_empty_page_that_is_valid_is_asked_again(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    site.quirks["empty_page"] = 2
    assert len(documents(crawl(web, settings))) == STORIES
    assert len(asked(web, "/api/query")) == 3


def test_an_error_under_status_200_is_asked_again(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    site.quirks["error_as_200"] = 1
    assert len(documents(crawl(web, settings))) == STORIES


def test_a_paper_that_moves_to_the_next_page_counts_once(
    web: Web, settings: Settings, site: simulated.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arxiv_feeds, "PAGE_SIZE", 4)
    site.quirks["moving_items"] = 1
    items = crawl(web, settings)
    assert len(documents(items)) == STORIES
    assert len([item for item in items if isinstance(item, Repeat)]) == 1


@pytest.mark.parametrize("quirk", ["extra_fields", "missing_fields"])
def test_fields_that_come_and_go_cost_nothing(
    web: Web, settings: Settings, site: simulated.Site, quirk: Any
) -> None:
    site.quirks[quirk] = 1
    found = documents(crawl(web, settings))
    assert len(found) == STORIES
    assert site.quirks[quirk] == 0


def test_the_order_of_results_does_not_depend_on_hashes(web: Web, settings: Settings) -> None:
    items = crawl(web, settings)
    assert list(documents(items)) == sorted(
        documents(items), key=lambda key: documents(items)[key].event_time
    )


def test_one_request_a_paper_not_a_head_and_a_get(web: Web, settings: Settings) -> None:
    crawl(web, settings)
    assert {method for _, method, _ in web.requests} == {"GET"}
    assert len(asked(web, "/src/")) == len(set(asked(web, "/src/")))


def test_old_months_can_be_filled_in(settings: Settings) -> None:
    month = Month("2017-01")
    with serve_sites([simulated.Site(World(0, month, month, stories_per_month=4))]) as web:
        assert len(documents(crawl(web, settings, month))) == 4
    assert INFO.lacks(month) is None


def test_a_months_sample_is_of_the_volume_of_paper_000(web: Web, settings: Settings) -> None:
    assert INFO.monthly_bytes == 28_000_000
    assert len(CATEGORIES) > 10
    items = crawl(web, settings, max_bytes=3_000)
    sizes = [len(document.text.encode()) for document in documents(items).values()]
    assert 3_000 <= sum(sizes) < 3_000 + max(sizes)
    assert len(asked(web, "/src/")) <= len(sizes) + 1  # one more for the PDF, if it was drawn


def test_a_licence_is_the_papers_own(web: Web, settings: Settings, site: simulated.Site) -> None:
    for key, document in documents(crawl(web, settings)).items():
        assert document.licence == (site.papers[key].licence or "LicenseRef-unknown")


# Sources


def test_a_pdf_without_source_is_dropped(web: Web, settings: Settings) -> None:
    assert drops(crawl(web, settings))["2302.00009"] == "pdf_only"


def test_a_withdrawn_paper_is_not_even_asked_for(web: Web, settings: Settings) -> None:
    assert drops(crawl(web, settings))["2302.00010"] == "withdrawn"
    assert not asked(web, "/src/2302.00010")


def test_a_source_that_fails_costs_its_paper_only(web: Web, settings: Settings) -> None:
    web.faults.append(Fault("status", "arxiv", "/src/2302.00001v1", 99, 500))
    web.faults.append(Fault("status", "arxiv", "GetRecord.*2302.00002|2302.00002&", 99, 503))
    items = crawl(web, settings)
    failures = {item.native_id: item.reason for item in items if isinstance(item, Failure)}
    assert failures == {"2302.00001": "http_5xx", "2302.00002": "http_5xx"}
    assert len(documents(items)) == STORIES - 2


def test_a_list_that_fails_makes_the_month_partial(web: Web, settings: Settings) -> None:
    web.faults.append(Fault("status", "arxiv", "/api/query", 99, 500))
    with pytest.raises(SourceUnavailable):
        crawl(web, settings)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (gzip.compress((HEAD + "Alone.").encode()), {"Content-Type": "application/x-eprint"}),
        (gzip.compress((HEAD + "Alone.").encode()), {"Content-Encoding": "x-gzip"}),
        ((HEAD + "Alone.").encode(), {"Content-Type": "application/gzip"}),
        (gzip.decompress(tar_of({"main.tex": HEAD + "Alone."})), {"Content-Type": "text/html"}),
    ],
    # Names without the bytes: gzip writes the time of day into them, and two workers collect twice.
    ids=["gzip", "gzip by header", "plain", "tar"],
)
def test_a_lone_gzipped_tex_is_read_whatever_its_headers_say(
    web: Web, settings: Settings, body: bytes, headers: dict[str, str]
) -> None:
    """tarfile alone refuses such a package, so that peers lose these papers."""
    serve_paper(web, body, headers)
    assert documents(crawl(web, settings))["2302.00001"].text == "Introduction\n\nAlone."


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"%PDF-1.5", "pdf_only"),
        (b"%!PS-Adobe-3.0", "no_tex"),
        (b"<html><body>Withdrawn", "no_tex"),
        (b"\x1f\x8b broken", "bad_archive"),
        (tar_of({"readme.md": "x"}), "no_tex"),
        (tar_of({"../../evil.tex": HEAD}), "unsafe_path"),
        (tar_of({"/etc/evil.tex": HEAD}), "unsafe_path"),
        (tar_of({f"{number}.tex": "x" for number in range(2_001)}), "too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "package",
)
def test_the_first_bytes_say_what_a_source_is(
    web: Web, settings: Settings, body: bytes, reason: str
) -> None:
    serve_paper(web, body)
    items = crawl(web, settings)
    assert drops(items)["2302.00001"] == reason
    assert len(documents(items)) == STORIES - 1


def test_a_hostile_archive_writes_nothing(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    site.quirks["hostile_archive"] = 1
    items = crawl(web, settings)
    assert list(drops(items).values()).count("unsafe_path") == 1
    assert not Path("/tmp/evil.tex").exists()


# LaTeX


def test_authors_with_nested_braces_do_not_survive() -> None:
    r"""A peer's ``\author{.*?}`` stops at the first closing brace."""
    author = r"\author{{\bf A {\'E}} \\ \texttt{a@b.example} \and {C {D {E}}} \thanks{f@g.example}}"
    text = read_latex({"a.tex": f"\\documentclass{{a}}{author}\\begin{{document}}{author}"
                                "\\section{Introduction}Prose."}).text  # fmt: skip
    assert text == "Introduction\n\nProse."


def test_text_between_the_signs_of_two_formulas_is_not_eaten() -> None:
    """A peer's ``<[^>]*>`` takes it for a tag."""
    source = HEAD + "If $a<b$ then this stays, and if $c>d$ then this, too: $x<y>z$."
    assert "$a<b$ then this stays, and if $c>d$ then this, too: $x<y>z$." in (
        read_latex({"a.tex": source}).text
    )


def test_the_abstract_is_not_kept_first() -> None:
    source = HEAD.replace("\\section", "\\begin{abstract}Abstract.\\end{abstract}\\section")
    assert read_latex({"a.tex": source + "Prose."}).text == "Introduction\n\nProse."


@pytest.mark.parametrize(
    "end",
    [
        r"\bibliography{a}", r"\printbibliography", r"\begin{thebibliography}{9}", r"\appendix",
        r"\begin{appendix}", r"\section*{Acknowledgements}", r"\acknowledgments",
        r"{\bf Acknowledgments.}", r"\textbf{Acknowledgement}", r"\bmhead{Acknowledgments}",
        r"\backmatter",
    ],
)  # fmt: skip
def test_bibliography_and_appendix_are_cut(end: str) -> None:
    assert (
        read_latex({"a.tex": f"{HEAD}Prose.\n\n{end} Not this."}).text == "Introduction\n\nProse."
    )


def test_included_files_are_read_too_not_the_main_file_only() -> None:
    files = {
        "main.tex": HEAD + r"\input{a} \include{parts/b} \subfile{c} \import{parts/}{d}",
        "a.tex": "First.", "parts/b.tex": "Second.", "parts/d.tex": "Fourth.",
        "c.tex": r"\documentclass[main]{subfiles}\begin{document}Third.\end{document}",
    }  # fmt: skip
    assert read_latex(files).text == "Introduction\n\nFirst. Second. Third. Fourth."


def test_cycles_of_inputs_end() -> None:
    files = {"main.tex": HEAD + r"\input{a}", "a.tex": r"A \input{b}", "b.tex": r"B \input{a}."}
    assert read_latex(files).text == "Introduction\n\nA B ."


@pytest.mark.parametrize("name", ["/etc/passwd", "../../../../../etc/passwd", "~/.netrc"])
def test_input_never_reads_a_file_outside_the_archive(name: str) -> None:
    """A peer opens any path that a paper names."""
    source = HEAD + rf"A \input{{{name}}} \include{{{name}}} \import{{/etc/}}{{passwd}} B"
    assert read_latex({"main.tex": source}).text == "Introduction\n\nA B"


def test_the_toplevel_file_of_00readme_is_the_root() -> None:
    files = {"long.tex": HEAD + "x" * 999, "main.tex": HEAD}
    assert choose_root(files) == "long.tex"
    assert choose_root({**files, "00README.XXX": "main.tex toplevelfile"}) == "main.tex"
    readme = '{"sources": [{"filename": "main.tex", "usage": "toplevel"}]}'
    assert choose_root({**files, "00README.json": readme}) == "main.tex"
    assert choose_root({**files, "00README.XXX": "../gone.tex toplevelfile"}) == "long.tex"


def test_the_root_is_the_file_with_the_most_inputs() -> None:
    files = {"long.tex": HEAD + "x" * 999, "main.tex": HEAD + r"\input{a}"}
    assert choose_root(files) == "main.tex"


@pytest.mark.parametrize(
    ("option", "encoding"),
    [("latin2", "latin2"), ("cp1251", "cp1251"), ("koi8-r", "koi8-r"), ("applemac", "mac-roman"),
     ("ansinew", "cp1252"), ("latin9", "iso8859-15")],
)  # fmt: skip
def test_the_encoding_that_a_paper_declares_is_used(option: str, encoding: str) -> None:
    text = {"cp1251": "Привет", "koi8-r": "Привет", "latin2": "Łódź"}.get(option, "naïve œuf" if
            option != "applemac" else "naïve")  # fmt: skip
    preamble = f"\\usepackage[{option}]{{inputenc}}".encode()
    files = {"main.tex": preamble + HEAD.encode(), "part.tex": text.encode(encoding)}
    assert decode_files(files)["part.tex"] == text


def test_what_is_utf8_is_utf8_whatever_a_paper_declares() -> None:
    files = {"main.tex": b"\\usepackage[latin1]{inputenc}", "part.tex": "Łódź".encode()}
    assert decode_files(files)["part.tex"] == "Łódź"
    assert (
        decode_files({"a.tex": b"na\xefve \\usepackage[klingon]{inputenc}"})["a.tex"][:5] == "naïve"
    )
    assert decode_files({"a.tex": b"\x81\xef \\usepackage[cp1252]{inputenc}"})["a.tex"][1] == "ï"


def test_comments_go_but_per_cent_signs_stay() -> None:
    source = HEAD + "5\\% of a \\\\% gone\nb \\verb|%c| % gone\n\\begin{comment}gone\\end{comment}"
    assert read_latex({"a.tex": source}).text == "Introduction\n\n5% of a b %c"


# Hostile papers, in the worker


HOSTILE = {
    "deep braces": HEAD + "{" * 1_000_000,
    "deep environments": HEAD + "\\begin{itemize}\\item " * 100_000,
    "unbalanced": HEAD + "}" * 1_000_000,
    "formulas without an end": HEAD + "$" * 500_001,
    "a bomb of macros": "\\documentclass{a}"
    + "".join(
        f"\\def\\{a}{{{f'{chr(92)}{b}' * 50}}}" for a, b in zip("abcde", "bcdef", strict=True)
    )
    + "\\def\\f{xxxxxxxxxx}\\begin{document}\\section{Introduction}\\a",
    "a macro of itself": "\\documentclass{a}\\def\\a{\\a\\a}\\begin{document}" + "\\a" * 50_000,
    "verbatim without an end": HEAD + "\\begin{verbatim}" * 100_000,
    "citations without an end": HEAD + "\\cite{" * 200_000,
    "control characters": HEAD + "\x01\x02\x03" * 50_000,
    "headings without an end": HEAD + "\\section{" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_paper_costs_itself_only(reader: LatexReader, name: str) -> None:
    try:
        assert len(reader.read({"a.tex": HOSTILE[name].encode()}).text) < len(HOSTILE[name])
    except ItemUnavailable as error:
        assert error.reason in {"parse_error", "too_large", "binary", "no_tex"}
    assert reader.read({"a.tex": (HEAD + "Good.").encode()}).text == "Introduction\n\nGood."


def test_control_characters_are_no_prose(reader: LatexReader) -> None:
    with pytest.raises(ItemUnavailable) as caught:
        reader.read({"a.tex": (HEAD + "words \x01\x02\x03\x04" * 99).encode()})
    assert caught.value.reason == "binary"


@pytest.mark.parametrize("data", [os.urandom(2**20), bytes(2**20), b"\xff\xfe" * 2**19])
def test_binary_junk_is_refused(reader: LatexReader, data: bytes) -> None:
    with pytest.raises(ItemUnavailable) as caught:
        reader.read(read_package(data, SUFFIXES))
    assert caught.value.reason in {"bad_archive", "no_tex"}


def test_fifty_megabytes_of_source_cost_themselves_only(reader: LatexReader) -> None:
    huge = {f"{number}.tex": b"word " * 2**20 for number in range(10)}
    huge["main.tex"] = HEAD.encode() + b"".join(b"\\input{%d}" % number for number in range(10))
    with pytest.raises(ItemUnavailable) as caught:
        reader.read(huge)
    assert caught.value.reason in {"too_large", "parse_error"}
    assert reader.read({"a.tex": (HEAD + "Good.").encode()}).text == "Introduction\n\nGood."


def test_a_killed_worker_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = psutil.Process().children()
    with LatexReader() as reader:
        reader.read({"a.tex": HEAD.encode()})
        [worker] = set(psutil.Process().children()) - set(before)
        worker.send_signal(signal.SIGKILL)
        with pytest.raises(ItemUnavailable, match="failed"):
            reader.read({"a.tex": HEAD.encode()})
        assert not worker.is_running()  # reaped, not a zombie
        assert reader.read({"a.tex": (HEAD + "Good.").encode()}).text.endswith("Good.")
    assert psutil.Process().children() == before
    assert list(tmp_path.iterdir()) == []


# What comes out


def test_text_and_title_hold_no_markup_of_a_feed(web: Web, settings: Settings) -> None:
    for document in documents(crawl(web, settings)).values():
        assert "<b>" not in document.text + document.title
        assert "\\section" not in document.text


@pytest.mark.parametrize(
    ("raw", "right"), marked("arxiv"), ids=lambda value: getattr(value, "stem", "")
)
def test_the_text_of_a_paper_is_what_a_reader_sees(
    reader: LatexReader, raw: Path, right: str
) -> None:
    """Each file is the source of a paper; the text beside it was written by hand."""
    assert token_f1(reader.read({raw.name: raw.read_bytes()}).text, right) >= 0.95
