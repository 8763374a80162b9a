"""Recordings that were uploaded to Wikimedia Commons, as segments of 4 s of 16 kHz mono PCM.

``commons.py`` says which files are of a month. Up to four segments of a recording are
kept, drawn by the seed. Silent segments are dropped. Recordings below 4 s are not taken: most of
them are single words of Lingua Libre, which would be nearly the whole month.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.month import Month
from crawlers.apis import mediawiki
from crawlers.contract import CrawlContext, DropReason, Item, SourceInfo
from extras.media import commons
from extras.media.commons import Choice, File
from extras.media.recordings import MAX_S, SEGMENT_S, draw_segments

INFO = SourceInfo(
    name="commons_audio",
    title="Wikimedia Commons: recordings",
    licence="CC-BY-SA-4.0",
    language="zxx",
    category="audio",
    sites=commons.SITES,
    request_interval_s=commons.INTERVAL_S,
    shares_pace=mediawiki.PACE,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    needs_contact=mediawiki.NEEDS_CONTACT,
    content="audio",
    monthly_bytes=12_000_000,  # 6 minutes in 94 segments; as many bytes as of images
)
# ``application/ogg`` may also be a film, which has a width.
TYPES = (
    "application/ogg", "audio/ogg", "audio/mpeg", "audio/wav", "audio/x-wav", "audio/flac",
    "audio/x-flac",
)  # fmt: skip


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the segments of the month's recordings; samples are in random order."""
    return commons.fetch_files(month, context, _CHOICE)


def _takes(file: File) -> bool:
    is_short = file.duration_s is not None and file.duration_s < SEGMENT_S
    return file.mime in TYPES and file.width == 0 and not is_short


def _refuses(file: File) -> tuple[DropReason, str] | None:
    if file.duration_s is not None and file.duration_s > MAX_S:
        return "too_long", f"{file.duration_s:.0f} s, at most {MAX_S} s are read"
    return None


_CHOICE = Choice(
    kind="audio",
    window_rows=commons.LIST_ROWS,
    takes=_takes,
    refuses=_refuses,
    cut=draw_segments,
)
