import io
import zipfile

from core.month import Month
from crawlers.contract import Repeat
from extras.more_sources.simulator.dumps import FederalRegister as Site
from extras.more_sources.simulator.dumps import number_of
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl, by_id, count_drops, reasons_of
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2024-02")
WORLD = World(6, MONTH - 1, MONTH, stories_per_month=12)
# The first lines of a document of the issue of 2024-02-12, as GPO published it; shortened.
ISSUE = """<FEDREG><NOTICES><NOTICE>
            <PREAMB>
                <AGENCY TYPE="F">DEPARTMENT OF AGRICULTURE</AGENCY>
                <SUBJECT>Notice of Availability of the Draft Programmatic Assessment</SUBJECT>
                <ADD>
                    <HD SOURCE="HED">ADDRESSES:</HD>
                    <P>
                        Interested persons are invited to comment by email:
                        <E T="03">RFSI@usda.gov.</E>
                         Comments should reference the date and page number of this issue of the
                        <E T="04">Federal Register</E>
                        . AMS will address 9776\u20139784.
                    </P>
                </ADD>
            </PREAMB>
            <P>
                In the proposed rule,
                <SU>2</SU>
                <FTREF/>
                 FDA announced its intention.
            </P>
            <FTNT><P><SU>2</SU>\u2009Applications, 84 FR 30968.</P></FTNT>
            <FRDOC>[FR Doc. 2024\u201302801 Filed 2\u20139\u201324; 8:45 am]</FRDOC>
</NOTICE></NOTICES></FEDREG>"""


def packed(**files: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "-") + ".xml", text)
    return out.getvalue()


def serve(web: Web, body: bytes) -> None:
    web.faults.append(Fault("status", "govinfo", ".zip", 9, 200, {}, body))


def test_texts_and_days_are_those_of_the_issues(whole: Whole, site: Site) -> None:
    found = by_id(whole.items)
    articles = {number_of(each): each for each in site.newsroom.of_month(MONTH)}
    assert len(found) == 14  # with that of a president and the one that comes twice
    for name, item in found.items():
        article = articles[name]
        assert item.text.endswith(article.text) and item.title == article.title
        assert item.event_time.date() == article.published.date()
        assert (item.extra["kind"] == "presdocu") == (article.oddity == "president")


def test_what_is_left_out_is_counted(whole: Whole) -> None:
    items = whole.items
    assert count_drops(items) == {"parse_error": 1, "empty": 1}
    assert len([item for item in items if isinstance(item, Repeat)]) == 1


def test_a_document_as_published_is_read(crawl: Crawl, web: Web) -> None:
    serve(web, packed(FR_2024_02_12=ISSUE, FR_2024_02_13="<FEDREG>", FR_2024_03_01=ISSUE))
    items = crawl()
    [document] = by_id(items).values()
    assert document.native_id == "2024-02801"  # the en dashes of before March 2024 are hyphens
    assert document.text.split("\n\n") == [
        "ADDRESSES:",
        "Interested persons are invited to comment by email: RFSI@usda.gov. Comments should "
        "reference the date and page number of this issue of the Federal Register. AMS will "
        "address 9776-9784.",
        "In the proposed rule, FDA announced its intention.",
    ]
    assert reasons_of(items) == {
        "issue of 2024-02-13": "parse_error", "issue of 2024-03-01": "outside_month",
    }  # fmt: skip
