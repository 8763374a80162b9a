"""Documents of the US Federal Register: rules, proposed rules, notices, presidential documents.

GPO publishes a ZIP file a month with an XML file for each issue, from 2000 on, for programs
(``/bulkdata/FR/2024/02/FR-2024-02.zip``, https://github.com/usgpo/bulk-data). Neither a monthly
file nor robots.txt was seen: other clients name the files so, and say that ``/bulkdata`` is open.
The site federalregister.gov is not asked, since it answers some programs with "Request Access". A
document belongs to the month of its issue, which is a day without a time
(``extra.date_precision``). The text is that of headings and paragraphs; tables, footnotes and
signatures are left out. In March 2024 GPO replaced en dashes by hyphens; here all are hyphens.

Works of the US government are in the public domain (17 U.S.C. 105); a document may quote others.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from lxml import etree

from core.month import Month
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo
from crawlers.text.cleaning import normalise
from crawlers.web.fetcher import Fetched, Fetcher, get_list, read_time

SITE = "govinfo"
INFO = SourceInfo(
    name="federal_register",
    title="US Federal Register: rules, notices and presidential documents",
    licence="LicenseRef-public-domain",
    language="en",
    category="law",
    sites={SITE: "https://www.govinfo.gov"},
    lag_days=2,
    monthly_bytes=6_000_000,
    whole_months="its files are of whole months",
)
# a month has some 12 MB, unpacked 60 MB
MAX_ZIP_BYTES = 96_000_000
MAX_XML_BYTES = 512_000_000
KINDS = ("RULE", "PRORULE", "NOTICE", "PRESDOCU")

_FAULTS = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError,
)  # fmt: skip
_ISSUE = re.compile(r"(?:[\w-]{1,40}/){0,3}FR-(\d{4}-\d\d-\d\d)\.xml", re.ASCII)
_NUMBER = re.compile(r"FR Doc\.?\s*([A-Z]?\d{1,4}-\d{1,6})\b", re.ASCII)
_BLOCKS = ("HD", "P", "FP", "AMDPAR", "PROC")
_LEFT_OUT = ("FTNT", "GPOTABLE", "MATH", "SIG", "SU", "CNTNTS")
_GAP = re.compile(r"\s+(?=[.,;:!?)\]](?:\s|$))|(?<=[(\[])\s+")  # beside elements within a line


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield each document in the order of issues; samples are in random order."""
    listed = _list_documents(month, context.fetcher)
    return context.sample_list(listed, lambda each: each.native_id, lambda each: [each])


def _list_documents(month: Month, fetcher: Fetcher) -> Iterator[Document | Drop]:
    """Yield the documents of a month's issues, from one ZIP file."""
    year, number = str(month).split("-")
    path = f"/bulkdata/FR/{year}/{number}/FR-{month}.zip"
    # The file grows until the month's end, so one from before it lacks issues.
    page = get_list(
        fetcher, SITE, path, {}, _is_damaged, max_bytes=MAX_ZIP_BYTES, not_before=month.end
    )
    for day, data in _issues(page.body):
        published = read_time(day, dt.UTC)
        if published is None or published not in month:
            yield Drop(f"issue of {day}", "outside_month", f"in the file of {month}")
            continue
        try:
            root = _parse(data)
        except etree.XMLSyntaxError as error:
            yield Drop(f"issue of {day}", "parse_error", str(error))
            continue
        for place, element in enumerate(root.iter(*KINDS)):
            yield _read(element, f"{day} entry {place}", published, page.retrieved_at)


def _is_damaged(fetched: Fetched) -> bool:
    """Return True for what is no ZIP file with an issue, such as an error under status 200."""
    try:
        with zipfile.ZipFile(io.BytesIO(fetched.body)) as archive:
            size = sum(each.file_size for each in archive.infolist())
            names = filter(_ISSUE.fullmatch, archive.namelist())
            return size > MAX_XML_BYTES or not any(names) or archive.testzip() is not None
    except _FAULTS:
        return True


def _issues(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield day and XML of each issue in a month's ZIP file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in sorted({*archive.namelist()}):
            found = _ISSUE.fullmatch(name)
            if found:
                yield found[1], archive.read(name)


def _parse(data: bytes) -> Any:
    """Parse an issue, without entities, comments and the elements that are left out."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(data, parser)
    etree.strip_elements(root, *_LEFT_OUT, with_tail=False)
    return root


def _read(
    element: Any, place: str, published: dt.datetime, retrieved_at: dt.datetime
) -> Document | Drop:
    """Return a document of an issue in XML, or why it is left out."""
    title = _line(element.find(".//SUBJECT")) or _line(element.find(".//HD"))
    text = "\n\n".join(filter(None, map(_line, element.iter(*_BLOCKS))))
    number = _NUMBER.search(_line(element.find(".//FRDOC")))
    if number is None:
        return Drop(place, "parse_error", f"no number: {title[:80]}")
    if not text:
        return Drop(number[1], "empty", "no heading and no paragraph")
    url = f"https://www.federalregister.gov/d/{number[1]}"
    return Document(
        native_id=number[1],
        version_id=number[1],
        text=text,
        title=title,
        url=url,
        event_time=published,
        date_kind="published",
        text_as_of=published,
        retrieved_at=retrieved_at,
        licence=INFO.licence,
        attribution=f"“{title}”, Federal Register, {url}",
        cluster_id=f"fr:{number[1]}",
        extra={
            "kind": element.tag.lower(),
            "agency": _line(element.find(".//AGENCY")),
            "date_precision": "day",
        },
    )


def _line(element: Any) -> str:
    if element is None:
        return ""
    text = normalise("".join(element.itertext())).replace("\u2013", "-")
    return _GAP.sub("", " ".join(text.split()))
