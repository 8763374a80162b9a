"""LaTeX sources as markup: joins a paper's files into one document, and selects its prose.

The nesting of inputs and of macros is limited. Some regular expressions take quadratic time on
crafted text, so callers need a time limit, as in ``latex.LatexReader``.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping

from core.errors import ItemUnavailable

SUFFIXES = (".tex", ".ltx", ".latex", ".txt", "00readme.json", "00readme.xxx")
MAX_DEPTH = 20  # maximum nesting of files that include files
MAX_CHARACTERS = 20_000_000  # maximum after expansion of inputs and macros; most papers: < 200,000
_MAX_MACRO_CHARACTERS = 1_000
_MACRO_ROUNDS = 5  # maximum nesting depth of macros in macros


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
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


_COMMENT = re.compile(
    r"""
      \\begin\{comment\}.*?\\end\{comment\}
    | \\iffalse\b.*?\\fi\b
    | (?P<address>\\(?:url|path|href)\s*\{[^{}\n]*\})
    | (?P<kept>
          \\begin\{(?P<environment>verbatim\*?|Verbatim|lstlisting|minted)\}
              .*?\\end\{(?P=environment)\}
        | \\verb\*?(?P<bar>[^a-zA-Z\s*])[^\n]*?(?P=bar)
        | \\. )                              # \% and \\ included
    | %[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?       # TeX eats the newline, but a blank line still counts
    """,
    re.VERBOSE | re.DOTALL,
)
_INPUT = re.compile(
    r"\\(?:input|include|subfile|subfileinclude)\s*\{([^{}]*)\}"
    r"|\\input\s+([^\s{}\\]+)"
    r"|\\(?:sub)?import\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}"
)
_CLASS = re.compile(r"\\document(?:class|style)\s*(?:\[[^\]]*\])?\s*\{\s*(?!subfiles|standalone)")
_BEGIN_DOCUMENT = re.compile(r"\\begin\s*\{document\}")
_END_DOCUMENT = re.compile(r"\\end\s*\{document\}")


def strip_comments(text: str) -> str:
    r"""Remove TeX comments; ``\%``, verbatim text and URLs keep their per cent signs."""

    def keep(match: re.Match[str]) -> str:
        if match["address"]:
            address = match["address"].replace("~", r"\textasciitilde{}")
            return re.sub(r"(?<!\\)%", r"\\%", address)
        return match["kept"] or ""

    return _COMMENT.sub(keep, text)


def choose_root(files: Mapping[str, str]) -> str:
    """Return the name of a paper's main file; arXiv's file 00README may declare it.

    Otherwise, the main file must have a document class and a document body. Of several, the one
    that includes most files is chosen, then the longest. Raise ItemUnavailable (``no_tex``) if
    there is none.
    """
    if declared := next((name for name in _declared_roots(files) if name in files), None):
        return declared
    roots = [n for n, text in files.items() if _CLASS.search(text) and _BEGIN_DOCUMENT.search(text)]
    if not roots:
        raise ItemUnavailable("no_tex", "no file has a document class and a document body")
    return max(roots, key=lambda n: (len(_INPUT.findall(files[n])), len(files[n]), n))


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
    root, budget = choose_root(files), MAX_CHARACTERS

    def expand(name: str, stack: tuple[str, ...]) -> str:
        nonlocal budget
        text = files[name]
        budget -= len(text)
        if budget < 0:
            raise ItemUnavailable("too_large", f"inputs add up to over {MAX_CHARACTERS} characters")
        if stack and (begin := _BEGIN_DOCUMENT.search(text)):  # cut a subfile's preamble
            end = _END_DOCUMENT.search(text, begin.end())
            text = text[begin.end() : end.start() if end else None]

        def include(match: re.Match[str]) -> str:
            wanted = match[1] or match[2] or posixpath.join(match[3] or "", match[4] or "")
            folders = (posixpath.dirname(root), posixpath.dirname(name))
            found = _find(files, wanted.strip().strip('"'), folders)
            is_allowed = found and found not in (*stack, name) and len(stack) < MAX_DEPTH
            return expand(found, (*stack, name)) if found and is_allowed else ""

        return _INPUT.sub(include, text)

    return expand(root, ())


def _find(files: Mapping[str, str], wanted: str, folders: tuple[str, ...]) -> str | None:
    for folder in folders:
        path = posixpath.normpath(posixpath.join(folder, wanted))
        for candidate in (f"{path}.tex", path):
            if candidate in files:
                return candidate
    return None


_DEFINITION = re.compile(
    r"\\(?:newcommand|providecommand|DeclareRobustCommand)\*?\s*"
    r"(?:\{\s*\\([A-Za-z@]+)\s*\}|\\([A-Za-z@]+))\s*(?=\{)"
    r"|\\[gx]?def\s*\\([A-Za-z@]+)\s*(?=\{)"
)
_INTRODUCTION = re.compile(
    r"(?:\\IEEEraisesectionheading\s*\{\s*)?"
    r"\\(?:section|chapter)\*?\s*(?:\[[^\]]*\])?\s*\{[^}]*introduction",
    re.IGNORECASE,
)
_FRONT_MATTER_END = re.compile(r"\\end\s*\{abstract\}|\\maketitle(?![A-Za-z])")
_BACK_MATTER = re.compile(
    r"\\(?:bibliography|printbibliography|appendix|appendices|acknowledg[a-z]*|ack)(?![A-Za-z])"
    r"|\\begin\s*\{(?:thebibliography|appendix|appendices|acks|acknowledg[a-z]*)\*?\}"
    r"|\\(?:sub)*(?:section|chapter|paragraph)\*?\s*(?:\[[^\]]*\])?\s*\{[^}]{0,40}?"
    r"(?:acknowledg|appendix|appendices|references\s*\}|bibliography)"
    r"|\\bmhead\*?\s*\{[^}]{0,40}?acknowledg|\\backmatter(?![A-Za-z])"
    r"|(?:\{\s*\\(?:bf|bfseries|it|em|sc)\s|\\text(?:bf|it|sc)\s*\{)\s*acknowledg"
    r"|\\end\s*\{document\}",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"\\([lr])q(?![A-Za-z])[ \t]*\n?")
_FLOAT = re.compile(
    r"\\(begin|end)\s*\{(?:(?:sub|wrap|sideways|SC|teaser)?(?:figure|table)|floatingfigure|listing"
    r"|algorithm|algorithmic|algorithm2e|tikzpicture|pgfpicture|forest|picture|longtable"
    r"|tabular[xy]?|abstract|keywords?|CCSXML|IEEEkeywords|IEEEbiography(?:nophoto)?)\*?\}"
)
_SILENT = re.compile(
    r"[ ~]*\\(?:[A-Za-z]*[cC]ite[A-Za-z]*|(?:eq|auto|page|name|c|C|v|V|f|sub|title|label[cC])?ref"
    r"|[cC]refrange|label|footnote|footnotetext|thanks|author[s]?|affil|affiliation|address|e?mail"
    r"|institute|institution|title|date|keywords|abstract|icml[a-z]*|marginpar|todo|caption"
    r"|captionof|includegraphics|bibliographystyle|[vh]space|setlength|addtolength|setcounter"
    r"|addtocounter|pagestyle|thispagestyle|hypersetup)(?![A-Za-z])\*?"
    r"(?:\s*\[[^\]]*\]){0,3}\s*(?=\{)"
)
_LENGTH = re.compile(  # length assignments of plain TeX, without braces
    r"\\(?:[vh]skip|kern|looseness|parindent|parskip|baselineskip|emergencystretch)(?![A-Za-z])"
    r"\s*=?\s*-?(?:[\d.]+\s*(?:pt|in|cm|mm|em|ex)?)?\\?(?:baselineskip)?"
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def _group_end(text: str, start: int) -> int | None:
    """Return the index after the closing brace of the group that opens at ``start``, or None."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return None


def expand_macros(text: str) -> str:
    r"""Replace the macros without arguments that the paper defines (``\def\eg{e.g.}``).

    Raise ItemUnavailable (``too_large``) if the result has more than MAX_CHARACTERS.
    """
    bodies: dict[str, str] = {}
    rest, position = [], 0
    for match in _DEFINITION.finditer(text):
        end = _group_end(text, match.end())
        if match.start() < position or end is None or end - match.end() > _MAX_MACRO_CHARACTERS:
            continue
        bodies[match[1] or match[2] or match[3]] = text[match.end() + 1 : end - 1]
        rest.append(text[position : match.start()])
        position = end
    text = "".join([*rest, text[position:]])
    if not bodies:
        return text
    names = "|".join(sorted(bodies, key=lambda name: (-len(name), name)))
    use = re.compile(rf"\\({names})(?![A-Za-z@])(\{{\}}|[ \t]*)")
    for _ in range(_MACRO_ROUNDS):
        text, count = use.subn(lambda match: _expansion(bodies[match[1]], match[2]), text)
        if len(text) > MAX_CHARACTERS:
            raise ItemUnavailable("too_large", f"macros expand to over {MAX_CHARACTERS} characters")
        if not count:
            break
    return text


def _expansion(body: str, after: str) -> str:
    r"""Return a macro's body; add the spaces ``after`` if it ends in a macro or ``\xspace``."""
    needs_space = "\\xspace" in body or re.search(r"\\[A-Za-z]+\Z", body)
    return body.replace("\\xspace", "") + (after if needs_space and after != "{}" else "")


def cut_body(text: str) -> tuple[str, bool]:
    """Return the text from introduction to back matter, and True if there is an introduction."""
    begin = _BEGIN_DOCUMENT.search(text)
    body = text[begin.end() :] if begin else text
    introduction = _INTRODUCTION.search(body)
    if introduction:
        body = body[introduction.start() :]
    else:
        body = body[max((m.end() for m in _FRONT_MATTER_END.finditer(body)), default=0) :]
    end = _BACK_MATTER.search(body)
    return body[: end.start()] if end else body, introduction is not None


def drop_floats(text: str) -> str:
    """Remove figures, tables, algorithms and drawings, nested ones included."""
    kept, position, depth = [], 0, 0
    for match in _FLOAT.finditer(text):
        if match[1] == "begin":
            if depth == 0:
                kept.append(text[position : match.start()])
                position = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                position = match.end()
    return "".join([*kept, text[position:]])


def drop_silent_macros(text: str) -> str:
    """Remove citations, references, footnotes, authors and lengths with all their arguments."""
    kept, position = [], 0
    for match in _SILENT.finditer(text):
        if match.start() < position:  # the match is inside removed text
            continue
        end: int | None = match.end()
        while end is not None and text[end : end + 1] == "{":
            last, end = end, _group_end(text, end)
        if end is None:
            end = last
        if end > match.end():
            kept.append(text[position : match.start()])
            position = end
    return "".join([*kept, text[position:]])


def find_prose(source: str) -> tuple[str, bool]:
    """Return the prose of a document, as markup, and True if it has an introduction."""
    body, has_introduction = cut_body(expand_macros(source))
    body = _QUOTE.sub(lambda match: "`" if match[1] == "l" else "'", body)
    return _LENGTH.sub("", drop_silent_macros(drop_floats(body))), has_introduction
