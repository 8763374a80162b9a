import gzip
import io
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psutil
import pytest

from core.corpus.partition import Seal, read_documents
from core.errors import ItemUnavailable
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import CrawlContext, Document
from crawlers.crawling.crawl import crawl_partition
from crawlers.text.archives import read_package
from crawlers.web.fetcher import Fetcher
from extras.arxiv.arxiv import CATEGORIES, INFO, fetch_month
from extras.arxiv.latex.reader import LatexReader
from extras.arxiv.latex.source import SUFFIXES, decode_files
from extras.arxiv.simulator import arxiv as simulated
from extras.arxiv.simulator.latex_files import MATHS
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl, by_id, documents_of, reasons_of, refused
from tests.crawlers.sources.conftest import Whole
from tests.tiers import few

MONTH = Month("2023-02")
STORIES = 8
WORLD = World(0, Month("2023-01"), Month("2023-03"), stories_per_month=STORIES)
Site = simulated.Site
SITE_KINDS = (Site, simulated.OaiSite)
HEAD = "\\documentclass{article}\\begin{document}\\section{Introduction}\n"


@pytest.fixture(scope="module")
def reader() -> Iterator[LatexReader]:
    with LatexReader(time_limit_s=3) as reader:
        yield reader


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


def licences_of(store: Store, seal: Seal) -> set[str]:
    batches = read_documents(store, seal, ["licence"])
    return {licence for batch in batches for licence in batch["licence"].to_pylist()}


def serve_paper(web: Web, number: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    path = f"/src/2302.0000{number}v1"
    web.faults.append(Fault("status", "arxiv", path, 9, 200, headers or {}, body))


def test_the_text_is_the_story_and_nothing_else(whole: Whole) -> None:
    papers = Site(WORLD).papers
    found = documents_of(whole.items)
    assert len(found) == WORLD.stories_per_month
    for document in found:
        paper = papers[document.native_id]
        first, *others = paper.story.paragraphs
        maths = [MATHS] if paper.number % 3 == 0 else []
        expected = ["Introduction", first, *maths, "Findings", *others]
        assert document.text == "\n\n".join(expected)
        assert document.title == paper.story.title
    assert any(papers[document.native_id].kind == "gzip" for document in found)
    assert any(len(papers[document.native_id].versions) > 1 for document in found)


def test_a_document_says_where_it_is_from(whole: Whole) -> None:
    by_number = {Site(WORLD).papers[d.native_id].number: d for d in documents_of(whole.items)}
    document = by_number[1]
    assert document.native_id == "2302.00002"
    assert document.version_id == "v1"
    assert document.cluster_id == "paper:2302.00002"
    assert document.url == "https://arxiv.org/abs/2302.00002v1"
    assert document.date_kind == "published"
    assert document.event_time == document.text_as_of
    assert document.event_time in MONTH
    assert document.retrieved_at > document.event_time
    assert document.licence == "http://creativecommons.org/licenses/by/4.0/"
    assert document.attribution.startswith("Ada Example, Boris Sample, Chen Muster et al.: ")
    assert document.attribution.endswith("arXiv:2302.00002v1")
    assert (document.category, document.language) == ("cs.CL", None)
    assert document.extra == {"categories": ["cs.CL", "cs.AI"], "has_introduction": True}
    assert by_number[3].licence == "LicenseRef-unknown"


def test_a_later_versions_licence_is_not_that_of_the_text(whole: Whole) -> None:
    papers = Site(WORLD).papers
    found = documents_of(whole.items)
    revised = [each for each in found if len(papers[each.native_id].versions) > 1]
    assert revised and all(papers[each.native_id].licence for each in revised)
    for document in found:
        is_revised = document in revised
        licence = papers[document.native_id].licence
        unknown = "LicenseRef-unknown"
        assert document.licence == (unknown if is_revised else licence or unknown)
        assert document.extra.get("has_later_versions", False) is is_revised


def test_the_month_is_that_of_the_time_whatever_the_id_says(whole: Whole) -> None:
    ids = [item.native_id for item in whole.items]
    assert "2303.09000" in ids  # in the last second of February
    assert "2302.09000" not in ids  # in the last second of January


def test_what_has_no_source_is_dropped_with_its_reason(whole: Whole) -> None:
    assert reasons_of(whole.items) == {"2302.00009": "pdf_only", "2302.00010": "withdrawn"}
    withdrawn = "/src/2302.00010"
    assert not [target for target in whole.targets if target.startswith(withdrawn)]


def test_a_month_is_sealed_under_the_robots_of_arxiv(own: Settings, store: Store) -> None:
    assert Site.robots == "User-agent: *\nDisallow: /\n"
    seal = crawl_partition("arxiv", MONTH, store, own, limit=2)
    assert (seal.manifest["status"], seal.manifest["kept"]) == ("complete", 2)


def test_without_oai_a_month_is_partial_and_its_licences_are_unknown(
    own: Settings, store: Store, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fetcher, "is_simulated", lambda self: False)  # keep the site's licences
    web.faults.append(Fault("status", "arxiv_oai", "/oai", 99, 429, {"Retry-After": "0"}))
    seal = crawl_partition("arxiv", MONTH, store, own)
    assert (seal.manifest["status"], seal.manifest["kept"]) == ("partial", STORIES)
    assert "answered 429" in seal.manifest["ended_early"]
    assert seal.manifest["dropped"]["outside_month"] == 1  # the API lists a minute more
    assert licences_of(store, seal) == {"LicenseRef-unknown"}
    web.faults.clear()
    again = crawl_partition("arxiv", MONTH, store, own)
    assert (again.manifest["status"], again.digest) == ("complete", seal.digest)
    assert "http://creativecommons.org/licenses/by/4.0/" in licences_of(store, again)


def test_a_crawl_that_is_given_up_leaves_no_process(own: Settings) -> None:
    before = psutil.Process().children()
    items = fetch_month(MONTH, CrawlContext(own, INFO.open_fetcher(own)))
    next(item for item in items if isinstance(item, Document))
    assert len(psutil.Process().children()) == len(before) + 1
    items.close()  # type: ignore[attr-defined]
    assert psutil.Process().children() == before


def test_one_request_a_paper_not_a_head_and_a_get(crawl: Crawl, web: Web) -> None:
    crawl()
    assert {method for _, method, _ in web.requests} == {"GET"}
    assert len(asked(web, "/src/")) == len(set(asked(web, "/src/")))


def test_a_months_sample_is_of_the_volume_of_paper_000(crawl: Crawl, web: Web) -> None:
    assert INFO.monthly_bytes == 28_000_000
    assert len(CATEGORIES) > 10
    items = crawl(max_bytes=3_000)
    sizes = [len(document.text.encode()) for document in by_id(items).values()]
    assert 3_000 <= sum(sizes) < 3_000 + max(sizes)
    assert len(asked(web, "/src/")) <= len(sizes) + 1  # one more for the PDF, if it was drawn


def test_a_lone_gzipped_tex_is_read_whatever_its_headers_say(crawl: Crawl, web: Web) -> None:
    """tarfile refuses such a package; the peers lose these papers."""
    alone = (HEAD + "Alone.").encode()
    packages: list[tuple[bytes, dict[str, str]]] = [
        (gzip.compress(alone), {"Content-Type": "application/x-eprint"}),
        (gzip.compress(alone), {"Content-Encoding": "x-gzip"}),
        (alone, {"Content-Type": "application/gzip"}),
        (gzip.decompress(tar_of({"main.tex": HEAD + "Alone."})), {"Content-Type": "text/html"}),
    ]
    for number, (body, headers) in enumerate(packages, 1):
        serve_paper(web, number, body, headers)
    found = by_id(crawl())
    for number, (_, headers) in enumerate(packages, 1):
        assert found[f"2302.0000{number}"].text == "Introduction\n\nAlone.", headers


def test_the_first_bytes_say_what_a_source_is(crawl: Crawl, web: Web) -> None:
    packages = [
        (b"%PDF-1.5", "pdf_only"),
        (gzip.compress(b"%PDF-1.5", mtime=0), "pdf_only"),
        (b"%!PS-Adobe-3.0", "no_tex"),
        (gzip.compress(b"%!PS-Adobe-3.0", mtime=0), "no_tex"),
        (b"<html><body>Withdrawn", "no_tex"),
        (gzip.compress(b"<!DOCTYPE html><html>", mtime=0), "no_tex"),
        (b"These are notes, not LaTeX.", "no_tex"),
        (b"\x1f\x8b broken", "bad_archive"),
        (b"", "bad_archive"),
        (tar_of({"readme.md": "x"}), "no_tex"),
        (tar_of({"../../evil.tex": HEAD}), "unsafe_path"),
        (tar_of({"/etc/evil.tex": HEAD}), "unsafe_path"),
        (tar_of({f"{number}.tex": "x" for number in range(2_001)}), "too_large"),
    ]
    for start in (0, 7):
        served = packages[start : start + 7]
        web.faults.clear()
        for number, (body, _) in enumerate(served, 1):
            serve_paper(web, number, body)
        items = crawl()
        reasons = reasons_of(items)
        for number, (body, reason) in enumerate(served, 1):
            assert reasons[f"2302.0000{number}"] == reason, body[:20]
        assert len(by_id(items)) == STORIES - len(served)


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


HOSTILE = {  # the beginning, what is repeated, and how often
    "deep braces": (HEAD, "{", 1_000_000),
    "deep environments": (HEAD, "\\begin{itemize}\\item ", 100_000),
    "unbalanced": (HEAD, "}", 1_000_000),
    "formulas without an end": (HEAD, "$", 500_001),
    "a bomb of macros": (
        "\\documentclass{a}"
        + "".join(
            f"\\def\\{a}{{{f'{chr(92)}{b}' * 50}}}" for a, b in zip("abcde", "bcdef", strict=True)
        )
        + "\\def\\f{xxxxxxxxxx}\\begin{document}\\section{Introduction}",
        "\\a",
        1,
    ),
    "a macro of itself": ("\\documentclass{a}\\def\\a{\\a\\a}\\begin{document}", "\\a", 50_000),
    "verbatim without an end": (HEAD, "\\begin{verbatim}", 100_000),
    "citations without an end": (HEAD, "\\cite{", 200_000),
    "control characters": (HEAD, "\x01\x02\x03", 50_000),
    "headings without an end": (HEAD, "\\section{", 100_000),
}


# A paper that takes too long is in latex/test_reader.py, too.
@pytest.mark.parametrize("name", few(HOSTILE, 1))
def test_a_hostile_paper_costs_itself_only(reader: LatexReader, name: str) -> None:
    begin, piece, times = HOSTILE[name]
    text = begin + piece * times
    try:
        assert len(reader.read({"a.tex": text.encode()}).text) < len(text)
    except ItemUnavailable as error:
        assert error.reason in {"parse_error", "too_large", "too_much_markup", "binary", "no_tex"}
    assert reader.read({"a.tex": (HEAD + "Good.").encode()}).text == "Introduction\n\nGood."


def test_control_characters_are_no_prose(reader: LatexReader) -> None:
    with refused("binary"):
        reader.read({"a.tex": (HEAD + "words \x01\x02\x03\x04" * 99).encode()})


def test_binary_junk_is_refused(reader: LatexReader) -> None:
    for data in (Random(1).randbytes(2**20), bytes(2**20), b"\xff\xfe" * 2**19):
        with pytest.raises(ItemUnavailable) as caught:
            reader.read(read_package(data, SUFFIXES))
        assert caught.value.reason in {"bad_archive", "no_tex"}, data[:9]


def test_inputs_that_add_up_to_megabytes_cost_themselves_only(reader: LatexReader) -> None:
    """A file of five megabytes is included five times."""
    main = HEAD.encode() + b"\\input{five}" * 5
    with pytest.raises(ItemUnavailable) as caught:
        reader.read({"five.tex": b"word " * 2**20, "main.tex": main})
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
