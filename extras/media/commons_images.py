"""Images that were uploaded to Wikimedia Commons, as greyscale patches of 64 rows and 128 columns.

``commons.py`` says which files are of a month. Up to four patches of an image are
kept, drawn by the seed from its grid. Plain patches (standard deviation below 2) are dropped.
JPEG, PNG, WebP and GIF are taken; drawings (SVG), TIFF, PDF and films are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.month import Month
from crawlers.apis import mediawiki
from crawlers.contract import CrawlContext, DropReason, Item, SourceInfo
from crawlers.pieces import HEIGHT, WIDTH
from extras.media import commons
from extras.media.commons import Choice, File
from extras.media.images import MAX_PIXELS, draw_patches

INFO = SourceInfo(
    name="commons_images",
    title="Wikimedia Commons: images",
    licence="CC-BY-SA-4.0",
    language="zxx",
    category="images",
    sites=commons.SITES,
    request_interval_s=commons.INTERVAL_S,
    shares_pace=mediawiki.PACE,
    robots_exempt_paths=mediawiki.ROBOTS_EXEMPT_PATHS,
    needs_contact=mediawiki.NEEDS_CONTACT,
    content="image",
    monthly_bytes=12_000_000,  # 1,465 patches, as many as Li et al. 2024 take (table 1)
)
TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif")


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the patches of the month's images; samples are in random order."""
    return commons.fetch_files(month, context, _CHOICE)


def _refuses(file: File) -> tuple[DropReason, str] | None:
    """Return why an image is too large or too small; None if it is neither."""
    size = f"{file.width} x {file.height} pixels"
    if file.width * file.height > MAX_PIXELS:
        return "too_large", f"{size}, at most {MAX_PIXELS} in all are read"
    if 0 < file.width < WIDTH or 0 < file.height < HEIGHT:
        return "too_small", f"{size}, at least {WIDTH} x {HEIGHT} are needed"
    return None


_CHOICE = Choice(
    kind="image",
    window_rows=100,
    takes=lambda file: file.mime in TYPES,
    refuses=_refuses,
    cut=draw_patches,
)
