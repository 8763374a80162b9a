"""Command `clean`, which shows what the crawlers make of one text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from cli.terminal.console import visible
from core.errors import ItemUnavailable, MalformedInput, UnknownName, UsageError
from core.plugins import import_parts
from core.storage.regular import require_regular

_SUFFIXES = {
    **dict.fromkeys((".md", ".markdown", ".rst"), "readme"),
    **dict.fromkeys((".html", ".htm"), "html"),
}


def clean_command(
    path: Annotated[
        str,
        Argument(help="A file, the folder of one LaTeX source, or - for stdin.", metavar="FILE"),
    ],
    form: Annotated[
        str | None,
        Option(
            "--format",
            help="One of wikitext, wikinews, readme, html, code, and latex (extra `arxiv`). "
            "Default: by the suffix.",
            metavar="FORMAT",
        ),
    ] = None,
) -> None:
    """Print what cleaning makes of a text, as models would score it.

    A text may be wikitext of Wikipedia or Wikinews (English), a LaTeX source, a README, an
    article's HTML, or source code. Rules that need a whole month are not applied, such as hygiene.
    """
    from crawlers.text.cleaning import clean

    readers = {**_READERS, **_of_extras("CLEANERS")}
    name = form or _guess_format(path, list(readers))
    if name not in readers:
        raise UnknownName("format", name, list(readers))
    try:
        text = readers[name](path, _read_files(path, name))
        text = clean(text, is_code=name == "code", is_plain=name == "readme")
    except ItemUnavailable as error:
        raise MalformedInput(
            f"{path} cannot be read as {name} ({error.reason}): {error}"
        ) from error
    if not text.strip():
        raise MalformedInput(f"nothing of {path} is left after cleaning it as {name}")
    typer.echo(visible(text) if sys.stdout.isatty() else text)


def _of_extras(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in import_parts("cleaners"):
        found |= getattr(part, kind)
    return found


def _guess_format(path: str, known: list[str]) -> str:
    """Return the format that a file's ending tells; raise an error if it tells none."""
    from crawlers.text.code import language_of

    suffixes = {**_SUFFIXES, **_of_extras("ENDINGS")}
    guess: str | None = suffixes.get(Path(path).suffix.lower())
    if Path(path).is_dir():
        guess = next(iter(_of_extras("PACKAGES")), None)
    elif guess is None and language_of(path):
        guess = "code"
    if guess is None:
        raise UsageError(f"the format of {path} is not clear; give --format {'|'.join(known)}")
    return guess


def _read_files(path: str, name: str) -> Mapping[str, bytes]:
    """Return the files of a source by name; only formats of ``PACKAGES`` have several."""
    from crawlers.text.archives import read_package

    suffixes: tuple[str, ...] | None = _of_extras("PACKAGES").get(name)
    try:
        if path == "-":
            content = sys.stdin.buffer.read()
        elif not Path(path).is_dir():
            require_regular(Path(path))
            content = Path(path).read_bytes()
        elif suffixes:
            folder = Path(path)
            contents: dict[str, bytes] = {}
            for file in sorted(folder.rglob("*")):
                is_own = file.is_file() and not file.is_symlink()
                if is_own and file.name.lower().endswith(suffixes):
                    contents[str(file.relative_to(folder))] = file.read_bytes()
            return contents
        else:
            raise UsageError(f"{path} is a folder; only a LaTeX source may be a folder")
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error.strerror or error}") from error
    return read_package(content, suffixes) if suffixes else {Path(path).name: content}


def _read_wikitext(path: str, files: Mapping[str, bytes]) -> str:
    """Return the text of a page in wikitext."""
    from crawlers.text import wikitext

    text = _decode(files)
    if wikitext.is_redirect(text):
        raise ItemUnavailable("redirect_page", "the page is a redirect")
    return wikitext.to_text(text)


def _read_wikinews(path: str, files: Mapping[str, bytes]) -> str:
    from crawlers.text import wikitext

    return wikitext.to_text(_decode(files), shown_templates=wikitext.WIKINEWS_TEMPLATES)


def _read_readme(path: str, files: Mapping[str, bytes]) -> str:
    from crawlers.text.code import read_readme

    return read_readme(path, *files.values())


def _read_html(path: str, files: Mapping[str, bytes]) -> str:
    from crawlers.text import articles

    return articles.to_text(_decode(files))


def _read_code(path: str, files: Mapping[str, bytes]) -> str:
    """Return the text of a source file."""
    from crawlers.text.code import LANGUAGES, language_of, read_source

    if language_of(path) is None:
        raise UsageError(f"{path} has no suffix of a known language: {' '.join(LANGUAGES)}")
    return read_source(path, *files.values())


def _decode(files: Mapping[str, bytes]) -> str:
    from crawlers.text.code import decode_text

    return decode_text(*files.values())


_READERS: dict[str, Callable[[str, Mapping[str, bytes]], str]] = {
    "wikitext": _read_wikitext,
    "wikinews": _read_wikinews,
    "readme": _read_readme,
    "html": _read_html,
    "code": _read_code,
}

COMMANDS = {"Collect text": {"clean": clean_command}}
