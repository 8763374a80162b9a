"""Simulated Wikimedia Commons: lists and descriptions of uploads by the API, and the files.

The shapes follow MediaWiki's ``ApiQueryAllImages`` and ``ApiQueryImageInfo`` and the responses that
Commons:Machine-readable data prints. Each month has pictures and recordings, and one file for each
special case (oddity).
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import io
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import soundfile
from PIL import Image

from core.json import JsonObject
from core.month import Month, month_range
from simulator.limits import LimitedSite
from simulator.mediawiki import lagging
from simulator.server import Request, Response, as_json, as_utc, take_quirk
from simulator.world import World

MAX_ROWS = 20  # maximum rows per response; the real API returns 500
API = "https://commons.wikimedia.org"
FILES = "https://upload.wikimedia.org"
PICTURES = 12  # ordinary files of a month
RECORDINGS = 8
PICTURE_ODDITIES = (
    "plain", "small", "huge", "bomb", "cut_off", "misnamed", "gfdl", "hidden", "gone", "replaced",
    "reuploaded", "drawing",
)  # fmt: skip
RECORDING_ODDITIES = ("word", "silent", "cut_off", "film", "gone")
LICENCES = ("CC BY-SA 4.0", "CC BY 3.0", "CC0", "Public domain", "CC BY-SA 3.0 de")
_RATE = 22_050


@dataclass(frozen=True)
class Upload:
    """A file: what the API says of it."""

    number: int
    uploaded: dt.datetime
    is_picture: bool
    oddity: str = ""

    @property
    def title(self) -> str:
        """The title, with characters that an address must escape."""
        what, suffix = ("Vue de l’été", "jpg") if self.is_picture else ("Chant & parole", "flac")
        if self.oddity == "drawing":
            suffix = "svg"
        return f"File:{what} {self.uploaded:%Y-%m} {self.number} {self.oddity or 'a'}.{suffix}"

    @property
    def path(self) -> str:
        """The path on the site of files, which begins with digits of the name's MD5."""
        name = self.title.removeprefix("File:").replace(" ", "_")
        digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
        return f"/wikipedia/commons/{digest[0]}/{digest[:2]}/{name}"

    @property
    def licence(self) -> str:
        """The short name of the licence."""
        return "GFDL" if self.oddity == "gfdl" else LICENCES[self.number % len(LICENCES)]

    @functools.cached_property
    def pixels(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The grey picture: waves and noise, which differ by file; shape (height, width)."""
        height, width = (40, 100) if self.oddity == "small" else (200, 300)
        row, column = np.mgrid[:height, :width]
        noise = np.random.default_rng(self._seed).integers(0, 24, (height, width))
        waves = 100 + 60 * np.sin(row / (7 + self.number)) + 60 * np.cos(column / 11)
        return (0 * noise + 128 if self.oddity == "plain" else waves + noise).astype(np.uint8)

    @property
    def _seed(self) -> int:
        return int.from_bytes(hashlib.sha256(self.title.encode()).digest()[:4])

    @functools.cached_property
    def body(self) -> bytes:
        """The file."""
        body = self._picture() if self.is_picture else self._recording()
        return body[: len(body) // 2] if self.oddity == "cut_off" else body

    def _picture(self) -> bytes:
        """Return the file's bytes; odd uploads are no PNG, or huge when decoded."""
        if self.oddity == "drawing":
            return b'<svg xmlns="http://www.w3.org/2000/svg"/>'
        if self.oddity == "misnamed":
            return b"%PDF-1.7\n" + bytes(200)
        file = io.BytesIO()
        if self.oddity == "bomb":  # its pixels take a hundred times more memory than the file
            Image.new("1", (8_400, 8_000)).save(file, "PNG")
        else:
            Image.fromarray(self.pixels).save(file, "PNG")
        return file.getvalue()

    def _recording(self) -> bytes:
        """Return a recording in FLAC: noise, or silence, or too short."""
        seconds = 1 if self.oddity == "word" else 9 + self.number % 3
        noise = np.random.default_rng(self._seed).normal(0, 0.1, seconds * _RATE)
        file = io.BytesIO()
        sound = 0 * noise if self.oddity == "silent" else noise
        soundfile.write(file, sound, _RATE, format="FLAC", subtype="PCM_16")
        return file.getvalue()

    def describe(self) -> JsonObject:
        """Return the fields of ``aiprop=timestamp|url|size|sha1|mime``."""
        info: JsonObject = {"timestamp": as_utc(self.uploaded)}
        if self.oddity == "hidden":
            return {**info, "filehidden": True, "size": 1, "width": 1, "height": 1}
        sizes: JsonObject = {"size": len(self.body), "width": 300, "height": 200}
        if not self.is_picture:
            is_film = self.oddity == "film"
            sizes |= {"width": 640 * is_film, "height": 480 * is_film}
            sizes["duration"] = 1.02 if self.oddity == "word" else 9.0 + self.number % 3
        if self.oddity == "huge":
            sizes |= {"size": 13_000_000, "width": 9000, "height": 6000}
        address = f"{FILES}{quote(self.path)}?utm_source=commons.wikimedia.org&utm_campaign=api"
        kind = "image/svg+xml" if self.oddity == "drawing" else "image/jpeg"
        return {
            **info, **sizes, "url": address,
            "descriptionurl": f"{API}/wiki/{quote(self.title.replace(' ', '_'))}",
            "sha1": self.sha1, "mime": kind if self.is_picture else "audio/flac",
        }  # fmt: skip

    @property
    def sha1(self) -> str:
        """SHA-1 of the file."""
        return hashlib.sha1(self.body, usedforsecurity=False).hexdigest()


class Uploads:
    """All files of the simulated site, by time."""

    def __init__(self, world: World) -> None:
        self._world = world

    @functools.cached_property
    def files(self) -> list[Upload]:
        """All files, by time of upload."""
        months = month_range(self._world.first, self._world.last)
        return sorted(
            (file for month in months for file in self.of_month(month)),
            key=lambda file: (file.uploaded, file.title),
        )

    def of_month(self, month: Month) -> list[Upload]:
        """Return the files of a month, the last two of them in its last second."""
        kinds = [(True, oddity) for oddity in ("",) * (PICTURES - 1) + PICTURE_ODDITIES]
        kinds += [(False, oddity) for oddity in ("",) * (RECORDINGS - 1) + RECORDING_ODDITIES]
        self._world.generator("commons", month).shuffle(kinds)
        last = month.end - dt.timedelta(seconds=1)
        step = (last - month.start) // len(kinds)
        times = [month.start + number * step for number in range(len(kinds))]
        kinds += [(True, ""), (False, "")]
        moments = [moment.replace(microsecond=0) for moment in (*times, last, last)]
        return [Upload(number, moments[number], *kind) for number, kind in enumerate(kinds)]

    @functools.cached_property
    def by_title(self) -> dict[str, Upload]:
        """Files by title."""
        return {file.title: file for file in self.files}


class Api(LimitedSite):
    """The API."""

    keys: tuple[str, ...] = ("commons",)
    robots: str | None = "User-agent: *\nAllow: /w/load.php?\nDisallow: /w/\nDisallow: /api/\n"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.uploads = Uploads(world)

    def respond_unlimited(self, request: Request) -> Response:
        """Respond to the two queries."""
        if not request.headers.get("user-agent"):
            return Response(403, body=b"Please set a user-agent")
        if request.path != "/w/api.php":
            return Response(404)
        if take_quirk(self, "error_as_200"):
            return lagging(6.2, retry_after_s=1)
        if request.arg("list") == "allimages":
            return as_json(self._list(request))
        if request.arg("prop") == "imageinfo" and request.arg("titles"):
            return as_json(self._describe(request))
        return as_json({"batchcomplete": True})

    def _list(self, request: Request) -> JsonObject:
        """Answer ``list=allimages``: uploads between two moments, and where the next ones begin."""
        if request.arg("aimime"):
            return _error("mimesearchdisabled", "MIME search is disabled in Miser Mode.")
        start, end = (dt.datetime.fromisoformat(request.arg(f"ai{n}")) for n in ("start", "end"))
        found = [file for file in self.uploads.files if start <= file.uploaded <= end]
        keys = [f"{file.uploaded:%Y%m%d%H%M%S}|{file.title}" for file in found]
        begin = request.arg("aicontinue")
        if begin and begin not in keys:
            return _error("badcontinue", "Invalid continue param.")
        first = keys.index(begin) if begin else 0
        last = first + min(int(request.arg("ailimit", "10")), MAX_ROWS)
        if found and not begin and take_quirk(self, "empty_page"):
            last = first
        rows = [self._row(file) for file in found[first:last]]
        if last < len(found) and last - first > 1 and take_quirk(self, "moving_items"):
            last -= 1  # the next page repeats a row
        response: JsonObject = {"query": {"allimages": rows}}
        if last < len(found):
            return {**response, "continue": {"aicontinue": keys[last], "continue": "-||"}}
        return {"batchcomplete": True, **response}

    def _row(self, file: Upload) -> JsonObject:
        """Return a row of the list of uploads; quirks take or add fields."""
        name = file.title.removeprefix("File:").replace(" ", "_")
        row = {"name": name, **file.describe(), "ns": 6, "title": file.title}
        if take_quirk(self, "missing_fields"):
            row = {key: value for key, value in row.items() if key not in {"descriptionurl", "ns"}}
        if take_quirk(self, "extra_fields"):
            row["badfile"] = False
        return row

    def _describe(self, request: Request) -> JsonObject:
        titles = request.arg("titles").split("|")
        pages = [self._page(title, request) for title in sorted(titles)]
        return {"batchcomplete": True, "query": {"pages": pages}}

    def _page(self, title: str, request: Request) -> JsonObject:
        """Answer ``prop=imageinfo`` for one title; odd files are gone, replaced or older."""
        file = self.uploads.by_title.get(title)
        if file is None or file.oddity == "gone":
            return {"ns": 6, "title": title, "missing": True, "imagerepository": ""}
        given: JsonObject = {
            "LicenseShortName": {
                "value": file.licence, "source": "commons-desc-page", "hidden": "",
            },
            "DateTimeOriginal": {
                "value": f'<time class="dtstart">{file.uploaded:%Y-%m-%d}</time>',
                "source": "commons-desc-page",
            },
        }  # fmt: skip
        asked = request.arg("iiextmetadatafilter").split("|")
        given = {name: value for name, value in given.items() if name in asked}
        sha1 = "0" * 40 if file.oddity == "replaced" else file.sha1
        versions = [{"timestamp": as_utc(file.uploaded), "sha1": sha1, "extmetadata": given}]
        if file.oddity == "reuploaded":
            earlier = file.uploaded - dt.timedelta(days=400)
            versions.append({"timestamp": as_utc(earlier), "sha1": "1" * 40, "extmetadata": given})
        number = self.uploads.files.index(file) + 1000
        return {
            "pageid": number, "ns": 6, "title": title, "imagerepository": "local",
            "imageinfo": versions[: int(request.arg("iilimit", "1"))],
        }  # fmt: skip


class Files(LimitedSite):
    """The files."""

    keys: tuple[str, ...] = ("commons_files",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._files = {file.path: file for file in Uploads(world).files}

    def respond_unlimited(self, request: Request) -> Response:
        """Respond with a file."""
        file = self._files.get(unquote(request.path))
        if file is None or file.oddity in {"gone", "hidden"}:
            return Response(404)
        kind = "image/jpeg" if file.is_picture else "audio/flac"
        return Response(200, {"Content-Type": kind}, file.body)


def _error(code: str, text: str) -> JsonObject:
    return {"errors": [{"code": code, "text": text}], "docref": "See /w/api.php"}


SITE_KINDS = (Api, Files)
