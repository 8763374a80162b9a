import datetime as dt
from dataclasses import replace

import pytest

from core.errors import AccessRefused, SourceChanged, SourceError, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.contract import Drop
from crawlers.web import pacing
from crawlers.web.fetcher import Fetcher
from crawlers.web.raw_cache import Fetched, RawCache
from extras.arxiv import lists
from extras.arxiv.arxiv import CATEGORIES, INFO
from extras.arxiv.lists import Entry, find_papers, list_changed, list_month
from extras.arxiv.simulator import arxiv as simulated
from simulator.server import Fault, Web
from simulator.world import World

MONTH = Month("2023-02")
WORLD = World(0, Month("2023-01"), Month("2023-03"))
ANY = 10**6
FIRST_PAGE = "from=2023-02-01"
SERVED_AT = "<responseDate>2023-02-28T23:00:00Z</responseDate>"  # within the month: one list
OAI = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{}</OAI-PMH>'
NO_CHANGE = OAI.format("<responseDate>2023-03-07T00:00:00Z</responseDate>{}")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    return [kind(WORLD) for kind in simulated.SITE_KINDS]


@pytest.fixture
def fetcher(own: Settings) -> Fetcher:
    return INFO.open_fetcher(own)


def asked(web: Web, part: str) -> list[str]:
    return [target for _, _, target in web.requests if part in target]


def answer(body: str, pattern: str = FIRST_PAGE, times: int = ANY, status: int = 200) -> Fault:
    headers = {"Content-Type": "text/xml", "Retry-After": "0"}
    return Fault("status", "arxiv_oai", pattern, times, status, headers, body.encode())


def serve_records(web: Web, *records: str, rest: str = "") -> None:
    listed = f"<ListRecords>{''.join(records)}{rest}</ListRecords>"
    web.faults.append(answer(NO_CHANGE.format(listed)))
    web.faults.append(answer(NO_CHANGE.format('<error code="noRecordsMatch"/>'), "from=2023-03"))


def record(**changes: str) -> str:
    """Return a record of a paper of the month; ``changes`` replace parts of it by name."""
    given = {
        "header": "<header><identifier>oai:arXiv.org:2302.00001</identifier></header>",
        "id": "2302.00001",
        "versions": '<version version="v1"><date>Wed, 1 Feb 2023 10:00:00 GMT</date></version>',
        "categories": "cs.CL",
        "rest": "",
        **changes,
    }
    return (
        "<record>{header}<metadata><arXivRaw xmlns='http://arxiv.org/OAI/arXivRaw/'><id>{id}</id>"
        "{versions}<categories>{categories}</categories>{rest}</arXivRaw></metadata></record>"
    ).format(**given)


def entries_of(found: list[Entry | Drop]) -> list[Entry]:
    assert not [each for each in found if isinstance(each, Drop)]
    return [each for each in found if isinstance(each, Entry)]


def test_a_months_papers_are_found_whenever_they_changed(fetcher: Fetcher) -> None:
    found = entries_of(list_changed(MONTH, CATEGORIES, fetcher))
    papers = simulated.Site(WORLD).papers
    assert [each.id for each in found] == [
        paper.id
        for paper in papers.values()
        if paper.published in MONTH and not set(CATEGORIES).isdisjoint(paper.categories)
    ]
    changed = {Month.of(papers[each.id].datestamp) for each in found}
    assert changed == {MONTH, MONTH + 1, MONTH + 2}
    assert any(each.is_revised for each in found)
    for each in found:
        paper = papers[each.id]
        assert each.published == paper.published
        assert each.licence == paper.licence
        assert each.is_revised == (len(paper.versions) > 1)
        assert each.is_withdrawn == (paper.kind == "withdrawn")


def test_both_interfaces_tell_the_same_of_a_paper(fetcher: Fetcher) -> None:
    by_change = entries_of(list_changed(MONTH, CATEGORIES, fetcher))
    by_date = entries_of(find_papers(MONTH, CATEGORIES, fetcher))
    of_month = [each for each in by_date if each.published in MONTH]  # the API has a minute more
    assert of_month == [replace(each, licence=None) for each in by_change]


def test_pages_follow_each_other(
    fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated, "OAI_PAGE_SIZE", 100)
    whole = list_changed(MONTH, CATEGORIES, fetcher)
    assert not asked(web, "resumptionToken")
    for size in (1, 2, 7):
        monkeypatch.setattr(simulated, "OAI_PAGE_SIZE", size)
        fetcher.forget(last_only=False)
        assert list_changed(MONTH, CATEGORIES, fetcher) == whole
    assert len(asked(web, "resumptionToken")) > 80


def test_lists_of_ended_months_serve_other_months(fetcher: Fetcher, web: Web) -> None:
    list_changed(MONTH - 1, CATEGORIES, fetcher)
    begun = len(web.requests)
    assert len(list_changed(MONTH, CATEGORIES, fetcher)) > 20
    assert len(web.requests) == begun


def test_the_list_of_the_running_month_has_no_end_and_is_read_again(
    fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Month, "last_complete", lambda: MONTH)
    monkeypatch.setattr(simulated, "OAI_PAGE_SIZE", 100)
    list_changed(MONTH, CATEGORIES, fetcher)
    ended, running = asked(web, "/oai")
    assert "until=2023-02-28" in ended
    assert "from=2023-03-01" in running and "until" not in running


def test_a_refused_token_costs_requests_not_papers(fetcher: Fetcher, web: Web) -> None:
    whole = list_changed(MONTH, CATEGORIES, fetcher)
    fetcher.forget(last_only=False)
    web.requests.clear()
    error = "<error code='badResumptionToken'>expired</error>"
    web.faults.append(answer(NO_CHANGE.format(error), "resumptionToken", times=2))
    web.faults.append(answer(NO_CHANGE.format("<error code='noRecordsMatch'/>"), "Token", times=1))
    assert list_changed(MONTH, CATEGORIES, fetcher) == whole
    assert len(asked(web, FIRST_PAGE)) == 1 + 3


def test_tokens_that_are_refused_for_ever_end(fetcher: Fetcher, web: Web) -> None:
    error = "<error code='badResumptionToken'>expired</error>"
    web.faults.append(answer(NO_CHANGE.format(error), "resumptionToken"))
    with pytest.raises(SourceUnavailable, match="broke off 4 times"):
        list_changed(MONTH, CATEGORIES, fetcher)
    assert len(asked(web, FIRST_PAGE)) == 4


def test_a_list_that_was_begun_on_another_day_is_read_again(
    fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list_changed(MONTH, CATEGORIES, fetcher)
    load = RawCache.load

    def aged(self: RawCache, request: str) -> Fetched | None:
        found = load(self, request)
        if found is None or FIRST_PAGE not in request:
            return found
        return replace(found, retrieved_at=found.retrieved_at - dt.timedelta(days=1))

    monkeypatch.setattr(RawCache, "load", aged)
    web.requests.clear()
    assert list_changed(MONTH, CATEGORIES, fetcher) == whole
    assert len(asked(web, "/oai")) == 2  # both pages of the list


LISTED = f"<ListRecords>{record()}</ListRecords>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("not XML", "expected XML"),
        ("", "expected XML"),
        ('<?xml version="1.0" encoding="klingon"?><a/>', "expected XML"),
        ('<?xml version="1.0" encoding="utf-7"?><a/>', "expected XML"),
        (f'<!DOCTYPE a [<!ENTITY b "b">]>{OAI.format("&b;")}', "expected XML"),
        (f"{OAI.format(SERVED_AT + LISTED)[:-40]}", "expected XML"),
        ("<html><body>Sorry</body></html>", "expected a date and a list"),
        (OAI.format(""), "expected a date and a list"),
        (OAI.format(LISTED), "expected a date and a list"),
        (OAI.format(SERVED_AT), "expected a date and a list"),
        (OAI.format(f"{SERVED_AT}<ListRecords/>"), "expected a date and a list"),
        (OAI.format(f"{SERVED_AT}<error>no code</error>"), "expected a date and a list"),
        (OAI.format(SERVED_AT.replace("2023-02-28T23:00:00Z", "0001-01-01T00:00:00+14:00")),
         "expected a date"),
        (OAI.format(SERVED_AT.replace("2023", "9" * 5000) + LISTED), "expected a date"),
        (OAI.format(f"{SERVED_AT}<error code='badArgument'>until date too late</error>"),
         "badArgument: until date too late"),
        (OAI.format(f"{SERVED_AT}<ListRecords><record/></ListRecords>"), "not one entry"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_a_change_of_the_source(
    fetcher: Fetcher, web: Web, body: str, message: str
) -> None:
    web.faults.append(answer(body))
    with pytest.raises(SourceChanged, match=message):
        list_changed(MONTH, CATEGORIES, fetcher)


@pytest.mark.parametrize(
    "body",
    [
        OAI.format(SERVED_AT + LISTED),  # the month is over, so the clock is wrong
        NO_CHANGE.format("<error code='noRecordsMatch'/>"),  # no paper changed for a month
    ],
)
def test_a_list_that_cannot_be_true_is_no_month_without_papers(
    fetcher: Fetcher, web: Web, body: str
) -> None:
    web.faults.append(answer(body))
    with pytest.raises(SourceUnavailable, match="expected papers that changed in 2023-02"):
        list_changed(MONTH, CATEGORIES, fetcher)


def test_a_token_that_leads_nowhere_ends(
    fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = "<resumptionToken completeListSize='{}'>{}</resumptionToken>"
    same = NO_CHANGE.format(f"<ListRecords>{record()}{rest.format('9' * 5000, 't')}</ListRecords>")
    web.faults.append(answer(same, "/oai"))
    with pytest.raises(SourceChanged, match="2 pages and the token 't'"):
        list_changed(MONTH, CATEGORIES, fetcher)
    monkeypatch.setattr(lists, "MAX_PAGES", 2)
    monkeypatch.setattr(simulated, "OAI_PAGE_SIZE", 1)
    web.faults.clear()
    with pytest.raises(SourceChanged, match="2 pages and the token"):
        list_changed(MONTH - 1, CATEGORIES, fetcher)


DATES = '<version version="v1"><date>{}</date></version>'


@pytest.mark.parametrize(
    ("odd", "name", "reason"),
    [
        ({"header": "<header status='deleted'><identifier>oai:arXiv.org:7</identifier></header>"},
         "7", "deleted"),
        ({"id": "../../api/query"}, "2302.00001", "parse_error"),
        ({"id": "", "header": ""}, "no id", "parse_error"),
        ({"id": "٢٣٠٢.٠٠٠٠١"}, "2302.00001", "parse_error"),
        ({"categories": ""}, "2302.00001", "parse_error"),
        ({"versions": ""}, "2302.00001", "parse_error"),
        ({"versions": "<version/>"}, "2302.00001", "parse_error"),
        ({"versions": DATES.replace("v1", "v2").format("Wed, 1 Feb 2023 10:00:00 GMT")},
         "2302.00001", "parse_error"),
        ({"versions": DATES.format("Mon, 1 Jan 0001 00:00:00 +1400")}, "2302.00001", "parse_error"),
        ({"versions": DATES.format("Wed, 31 Feb 2023 10:00:00 GMT")}, "2302.00001", "parse_error"),
        ({"versions": DATES.format("Wed, 1 Feb 2023 10:00:00")}, "2302.00001", "parse_error"),
        ({"versions": DATES.format(f"Wed, 1 Feb {'9' * 5000} 10:00:00 GMT")},
         "2302.00001", "parse_error"),
    ],
)  # fmt: skip
def test_an_odd_record_is_a_counted_drop_and_the_others_are_kept(
    fetcher: Fetcher, web: Web, odd: dict[str, str], name: str, reason: str
) -> None:
    serve_records(web, record(**odd), record(id="2302.00009"))
    dropped, paper = list_changed(MONTH, CATEGORIES, fetcher)
    assert isinstance(dropped, Drop) and isinstance(paper, Entry)
    assert (dropped.native_id, dropped.reason, paper.id) == (name, reason, "2302.00009")


def test_other_months_and_fields_are_left_out(fetcher: Fetcher, web: Web) -> None:
    before = "Tue, 31 Jan 2023 23:59:59 GMT"
    after = "Wed, 1 Mar 2023 00:00:00 GMT"
    last = "Tue, 28 Feb 2023 23:59:59 GMT"
    serve_records(
        web,
        record(id="2302.00001", versions=DATES.format(before)),
        record(id="2302.00002", versions=DATES.format(after)),
        record(id="2302.00003", categories="cs.XX hep-ph"),
        record(id="math.GT/0309136", versions=DATES.format(last), categories="cs.XX hep-th"),
    )
    [paper] = entries_of(list_changed(MONTH, CATEGORIES, fetcher))
    assert (paper.id, paper.category) == ("math.GT/0309136", "cs.XX")
    assert paper.categories == ("cs.XX", "hep-th")


REVISED = DATES + DATES.replace("v1", "v2").replace(
    "</date>", "</date><source_type>{}</source_type>"
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rest": "<license>http://x.org/by</license>"}, (False, False, "http://x.org/by")),
        ({"versions": REVISED.format(*["Wed, 1 Feb 2023 10:00:00 GMT"] * 2, "D")},
         (True, False, None)),
        ({"versions": REVISED.format(*["Wed, 1 Feb 2023 10:00:00 GMT"] * 2, "I")},
         (True, True, None)),
        ({"rest": "<comments>This paper has been withdrawn by X</comments>"}, (False, True, None)),
        ({"versions": DATES.format("Wed, 1 Feb 2023 10:00:00 GMT")
          + DATES.replace("v1", f"v{'9' * 5000}").format("?")}, (True, False, None)),
    ],
)  # fmt: skip
def test_what_a_record_says_of_versions_and_licence(
    fetcher: Fetcher, web: Web, fields: dict[str, str], expected: tuple[bool, bool, str | None]
) -> None:
    serve_records(web, record(**fields))
    [paper] = entries_of(list_changed(MONTH, CATEGORIES, fetcher))
    assert (paper.is_revised, paper.is_withdrawn, paper.licence) == expected


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("Ada Example, Boris Sample and C. M.", ("Ada Example", "Boris Sample", "C. M.")),
        ("A. One (1), B. Two (1 and 2) ((1) Here, (2) There (and there))", ("A. One", "B. Two")),
        (r"H. Poincar\'e and {\O}ystein L{\o}ve, Erd\H{o}s P\'{a}l, Sa\v{s}a \'{\i}",
         ("H. Poincaré", "Øystein Løve", "Erdős Pál", "Saša í")),
        ("Randy Sand, Andy Land", ("Randy Sand", "Andy Land")),
        ("(" * 5000, ("(" * 5000,)),
        ("", ()),
    ],
)  # fmt: skip
def test_names_are_read_from_a_line_of_authors(
    fetcher: Fetcher, web: Web, raw: str, names: tuple[str, ...]
) -> None:
    serve_records(web, record(rest=f"<authors>{raw}</authors>"))
    [paper] = entries_of(list_changed(MONTH, CATEGORIES, fetcher))
    assert paper.authors == names


def test_a_title_keeps_its_formulas(fetcher: Fetcher, web: Web) -> None:
    title = r"Schr\"{o}dinger's $\mathcal{N}=4$   and 50%" + "\n of {\\'E}t\\'e \\textbf{x}"
    serve_records(web, record(rest=f"<title>{title}</title>"))
    [paper] = entries_of(list_changed(MONTH, CATEGORIES, fetcher))
    assert paper.title == r"Schrödinger's $\mathcal{N}=4$ and 50% of Été \textbf{x}"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (answer("busy", "/oai", status=503), "answered 503"),
        (answer("Rate exceeded.", "/oai", status=429), "answered 429"),
        (answer("gone", "/oai", status=404), "answered 404"),
        (answer("<html>", "/oai"), "expected XML"),
        (Fault("truncate", "arxiv_oai", "/oai", ANY), "failed 5 times"),
    ],
)
def test_the_query_api_lists_a_month_that_oai_does_not(
    fetcher: Fetcher, web: Web, fault: Fault, message: str
) -> None:
    web.faults.append(fault)
    papers, failure = list_month(MONTH, CATEGORIES, fetcher)
    assert failure is not None and message in failure
    web.faults.clear()
    assert papers == find_papers(MONTH, CATEGORIES, fetcher)
    again = list_month(MONTH, CATEGORIES, fetcher)  # nothing of the failure was kept
    assert again.failure is None
    assert len(again.papers) == len(papers) - 1


@pytest.mark.parametrize(
    ("oai", "api", "kind"),
    [
        (answer("<html>", "/oai"), answer("<html>", "/api"), SourceChanged),
        (answer("<html>", "/oai"), answer("", "/api", status=503), SourceUnavailable),
        (answer("", "/oai", status=503), answer("<html>", "/api"), SourceUnavailable),
        (answer("", "/oai", status=503), answer("", "/api", status=403), SourceUnavailable),
        (answer("", "/oai", status=429), answer("", "/api", status=429), SourceUnavailable),
    ],
)
def test_without_any_list_both_failures_are_told(
    fetcher: Fetcher, web: Web, oai: Fault, api: Fault, kind: type[SourceError]
) -> None:
    web.faults += [oai, replace(api, key="arxiv")]
    with pytest.raises(SourceError, match="no list of 2023-02: OAI-PMH: .*; query API: ") as caught:
        list_month(MONTH, CATEGORIES, fetcher)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "fault",
    [
        answer("no", "/oai", status=403),
        answer("User-agent: *\nDisallow: /oai", "/robots.txt"),
        answer("", "/robots.txt", status=500),
    ],
)
def test_a_refusal_is_obeyed_and_not_bypassed(fetcher: Fetcher, web: Web, fault: Fault) -> None:
    web.faults.append(fault)
    with pytest.raises(AccessRefused):
        list_month(MONTH, CATEGORIES, fetcher)
    assert not asked(web, "/api/query")
