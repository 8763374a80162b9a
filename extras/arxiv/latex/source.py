"""LaTeX packages: the text of a paper's files, joined into one document.

The nesting of inputs is limited. Some regular expressions take quadratic time on crafted text, so
callers need a time limit, as in ``latex.LatexReader``.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping

from core.errors import ItemUnavailable
from extras.arxiv.latex.macros import MAX_CHARACTERS
from extras.arxiv.latex.shield import PRIVATE

SUFFIXES = (".tex", ".ltx", ".latex", ".sty", ".txt", ".bbl", "00readme.json", "00readme.xxx")
MAX_DEPTH = 20  # maximum nesting of files that include files


_INPUTENC = re.compile(rb"\\usepackage\s*\[\s*([A-Za-z0-9-]+)\s*\]\s*\{\s*inputenc\s*\}")
_ENCODINGS = {  # encoding names of inputenc: encoding names of Python
    **{f"latin{n}": f"latin{n}" for n in (1, 2, 3, 4, 5)},
    "latin9": "iso8859-15", "latin10": "iso8859-16", "ansinew": "cp1252", "applemac": "mac-roman",
    "macce": "mac-latin2", "koi8-r": "koi8-r", "koi8-u": "koi8-u",
    **{name: name for name in (
        "cp437", "cp850", "cp852", "cp855", "cp858", "cp865", "cp866", "cp1250", "cp1251", "cp1252",
        "cp1257",
    )},
}  # fmt: skip


def decode_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Decode a paper's files; one file may declare the encoding of all files (``inputenc``).

    Each file is decoded as UTF-8, else in the declared encoding, else as Latin-1 (never fails).
    """
    declared = (match for data in files.values() if (match := _INPUTENC.search(data)))
    names = (_ENCODINGS.get(match[1].decode().lower()) for match in declared)
    encoding = next(filter(None, names), "latin-1")
    return {name: decode(data, encoding) for name, data in files.items()}


def decode(data: bytes, encoding: str = "latin-1") -> str:
    """Decode TeX source as UTF-8, else in ``encoding``, else as Latin-1."""
    for candidate in ("utf-8-sig", encoding, "latin-1"):
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(candidate)
            break
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return PRIVATE.sub("", text)


_INPUT = re.compile(
    r"\\(?:input|include|subfile|subfileinclude|loadglsentries)\s*\{([^{}]*)\}"
    r"|\\input\s+([^\s{}\\]+)"
    r"|\\(?:sub)?import\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}"
)
_CLASS = re.compile(
    r"\\document(?:class|style)\s*(?:\[[^\]]{0,500}\])?\s*\{\s*(?!subfiles|standalone)(?P<name>[^{}]*)"
)
_BEGIN_DOCUMENT = re.compile(r"\\begin\s*\{document\}")
_END_DOCUMENT = re.compile(r"\\end\s*\{document\}")
_FRONT_MATTER = re.compile(
    r"\\(?:maketitle|begin\s*\{abstract\}|[aA]bstract|[a-z]*title|twocolumn)(?![A-Za-z])"
)
_MAIN_NAMES = frozenset({"main", "paper", "ms", "article", "manuscript", "arxiv"})
# Names and classes of what goes with a paper.
_SIDE_NAME = re.compile(
    r"(?:\A|[\W_])(?:supp|si\b|sm\b|append|respon|rebut|repl[yi]|cover|covlett|letter|poster|slide"
    r"|presenta|talk|beamer|template|sample|example|instruct|diff|erratum|readme)"
)
_SIDE_CLASS = re.compile(r"beamer|poster|letter|slides|exam")


def choose_root(files: Mapping[str, str]) -> str:
    """Return the name of a paper's main file; arXiv's file 00README may declare it.

    Otherwise, the main file must have a document class and a document body; a file that it inputs
    may begin the body. Of several, papers go before supplements, letters, posters and slides, and
    then files with a title or an abstract. Then the usual names are preferred, then the most
    inputs, then the longest file. Raise ItemUnavailable (``no_tex``) if there is none.
    """
    declared = next((name for name in _declared_roots(files) if name in files), None)
    if declared:
        return declared
    with_class = [name for name, text in files.items() if _CLASS.search(text)]
    parts = {name: [files[name], *_inputs(files, name)] for name in with_class}
    roots = [name for name in with_class if any(map(_BEGIN_DOCUMENT.search, parts[name]))]
    if not roots:
        raise ItemUnavailable("no_tex", "no file has a document class and a document body")
    return max(roots, key=lambda name: _rank(name, parts[name]))


def _inputs(files: Mapping[str, str], name: str) -> list[str]:
    """Return the files that a file inputs, but not those with a class of their own."""
    folders = (posixpath.dirname(name),)
    names = (_find(files, _wanted(found), folders) for found in _INPUT.finditer(files[name]))
    return [files[it] for it in dict.fromkeys(names) if it and not _CLASS.search(files[it])]


def _rank(name: str, parts: list[str]) -> tuple[object, ...]:
    """Return a sort key of a file that may be the main one; the greatest is the likeliest."""
    text = parts[0]
    stem = posixpath.splitext(posixpath.basename(name))[0].lower()
    document_class = _CLASS.search(text)
    is_side = (
        _SIDE_NAME.search(stem) or document_class and _SIDE_CLASS.match(document_class["name"])
    )
    return (
        not is_side,
        any(map(_FRONT_MATTER.search, parts)),
        stem in _MAIN_NAMES,
        len(_INPUT.findall(text)),
        len(text),
        name,
    )


def _declared_roots(files: Mapping[str, str]) -> Iterator[str]:
    """Yield the main files that 00README names (https://info.arxiv.org/help/00README.html)."""
    for name, text in files.items():
        if name.lower() == "00readme.xxx":
            yield from re.findall(r"^\s*(\S+)\s+toplevelfile\b", text, re.MULTILINE)
        elif name.lower() == "00readme.json":
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                for source in json.loads(text)["sources"]:
                    if source.get("usage") == "toplevel":
                        yield str(source["filename"])


def join_files(files: Mapping[str, str]) -> str:
    """Return a package as one document: the main file with its input files inserted.

    Raise ItemUnavailable with the reason ``no_tex``, or ``too_large`` (more than MAX_CHARACTERS).
    """
    root = choose_root(files)
    budget = MAX_CHARACTERS
    has_body = _BEGIN_DOCUMENT.search(files[root]) is not None

    def expand(name: str, stack: tuple[str, ...]) -> str:
        nonlocal budget
        text = files[name]
        budget -= len(text)
        if budget < 0:
            raise ItemUnavailable("too_large", f"inputs add up to over {MAX_CHARACTERS} characters")
        begin = _BEGIN_DOCUMENT.search(text) if stack and has_body else None
        if begin:  # cut a subfile's preamble
            end = _END_DOCUMENT.search(text, begin.end())
            text = text[begin.end() : end.start() if end else None]

        def include(match: re.Match[str]) -> str:
            folders = (posixpath.dirname(root), posixpath.dirname(name))
            found = _find(files, _wanted(match), folders)
            is_allowed = found and found not in (*stack, name) and len(stack) < MAX_DEPTH
            return expand(found, (*stack, name)) if found and is_allowed else ""

        return _INPUT.sub(include, text)

    return expand(root, ())


def _wanted(match: re.Match[str]) -> str:
    name = match[1] or match[2] or posixpath.join(match[3] or "", match[4] or "")
    return name.strip().strip('"')


def _find(files: Mapping[str, str], wanted: str, folders: tuple[str, ...]) -> str | None:
    """Return the path of an input file, sought in each folder; None if it is absent."""
    for folder in folders:
        path = posixpath.normpath(posixpath.join(folder, wanted))
        for candidate in (f"{path}.tex", path):
            if candidate in files:
                return candidate
    return None
