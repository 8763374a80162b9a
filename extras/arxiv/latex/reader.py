"""Conversion of LaTeX papers to plain text, in a worker process with time and memory limits.

The text goes from the introduction to the bibliography, appendix or acknowledgements. Title,
authors, abstract, figures, tables, algorithms, footnotes, citations and references are removed.
Formulas stay as LaTeX source in ``$…$``. Papers are untrusted, so included files are looked up only
in the package, never on the disk. One worker process (``python -m`` with this module) serves many
papers, since starting it takes longer than converting a paper.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pylatexenc import latex2text, latexwalker, macrospec

from core.errors import ItemUnavailable
from extras.arxiv.latex import units
from extras.arxiv.latex.conditions import choose_branches
from extras.arxiv.latex.glossary import expand_terms
from extras.arxiv.latex.macros import expand_macros, find_words
from extras.arxiv.latex.mending import mend
from extras.arxiv.latex.prose import find_prose
from extras.arxiv.latex.references import (
    Bibliography,
    resolve_citations,
    resolve_references,
)
from extras.arxiv.latex.shield import GONE, HOLE, Shield, shield_code
from extras.arxiv.latex.source import decode_files, join_files

TIME_LIMIT_S = 20.0  # maximum time per paper; 300,000 characters take 3 s (2 cores, 2026-11)
MEMORY_BYTES = 2**30
MAX_CONTROL_SHARE = 0.3  # maximum share of control characters in a text
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")


@dataclass(frozen=True)
class Paper:
    """The prose of a paper."""

    text: str  # one line per paragraph, with blank lines between paragraphs
    has_introduction: bool  # if False, the text starts after the abstract


class LatexReader:
    """Client of a worker process that converts papers to text; use it as a context manager.

    If the worker dies (time limit, memory limit, parser error), only the current paper is lost. The
    next paper gets a new worker. A slow worker is ended by its own alarm signal, even if this
    process has already ended.
    """

    def __init__(
        self, time_limit_s: float = TIME_LIMIT_S, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._limits = (str(time_limit_s), str(memory_bytes))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def read(self, files: Mapping[str, bytes]) -> Paper:
        """Extract the text of one paper.

        Raise ItemUnavailable with one of these reasons: ``no_tex`` (no file is a LaTeX document);
        ``too_large`` (inputs or macros expand without bound); ``too_much_markup`` (far more than
        in a paper); ``binary`` (too many control characters); ``parse_error`` (the worker died).
        """
        request = json.dumps(decode_files(files)).encode()
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 (for mypy)
        with contextlib.suppress(BrokenPipeError):  # a dead worker is detected below, on reading
            process.stdin.write(request + b"\n")
            process.stdin.flush()
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise ItemUnavailable("parse_error", f"the LaTeX reader {self._stop()}")
        answer = json.loads(line)
        if "reason" in answer:
            raise ItemUnavailable(answer["reason"], answer["message"])
        return Paper(**answer)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process that converts papers."""
        return subprocess.Popen(
            [sys.executable, "-m", "extras.arxiv.latex.reader", *self._limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[3],  # the folder that has the package ``crawlers``
        )

    def _stop(self) -> str:
        """End the worker if one runs; return how it ended, as text for an error message."""
        if self._process is None:
            return "was not running"
        process = self._process
        self._process = None
        process.kill()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 (for mypy)
        with contextlib.suppress(BrokenPipeError):  # the worker may not have read its input
            process.stdin.close()
        process.stdout.close()
        code = process.wait()
        return f"took longer than {self._limits[0]} s" if code == -signal.SIGALRM else "failed"


# Macros that pylatexenc does not know, or renders with additional marks. If the parser did not know
# their arguments, lengths and colours would be read as text.
_MACROS = {  # macro name: (arguments in pylatexenc's notation, replacement)
    **dict.fromkeys(("mbox", "hbox", "fbox", "texttt", "textsf", "textsl", "textup"), ("{", "%s")),
    **dict.fromkeys(("textmd", "textnormal", "textsuperscript", "textsubscript"), ("{", "%s")),
    **dict.fromkeys(("underline", "uline", "url", "path", "nolinkurl", "added"), ("{", "%s")),
    "enquote": ("{", "“%s”"),
    "replaced": ("{{", "%(1)s"),
    **dict.fromkeys(("ifthenelse", "iftoggle", "ifbool"), ("{{{", "%(2)s")),
    **dict.fromkeys(("phantom", "hphantom", "vphantom", "ding"), ("{", "")),
    **dict.fromkeys(("href", "hyperlink", "hypertarget", "foreignlanguage"), ("{{", "%(2)s")),
    "epigraph": ("{{", "%(1)s %(2)s"),
    "figurename": ("", "Figure"),
    "tablename": ("", "Table"),
    **dict.fromkeys(("nicefrac", "sfrac", "textfrac"), ("{{", "%(1)s/%(2)s")),
    **dict.fromkeys(("maketitle", "-", "@", "/", "null"), ("", "")),
    "\n": ("", " "),  # a backslash at the end of a line
    "S": ("", "§"),
    "P": ("", "¶"),
    **dict.fromkeys(("cite", "citet", "citep", "footnote", "includegraphics"), ("", GONE)),
    **dict.fromkeys(("ref", "eqref", "pageref"), ("", HOLE)),  # only those without an argument
    "onedot": ("", "."),
    "today": ("", HOLE),  # the day of the crawl would not be reproducible
    "rule": ("[{{", ""),
    "hyperref": ("[{", "%(2)s"),
    "textcolor": ("[{{", "%(3)s"),
    "colorbox": ("[{{", "%(3)s"),
    "fcolorbox": ("[{{{", "%(4)s"),
    "raisebox": ("{[[{", "%(4)s"),
    "makebox": ("[[{", "%(3)s"),
    "framebox": ("[[{", "%(3)s"),
    "parbox": ("[[[{{", "%(5)s"),
    "rotatebox": ("[{{", "%(3)s"),
    "scalebox": ("{[{", "%(3)s"),
    "resizebox": ("*{{{", "%(4)s"),
    "adjustbox": ("{{", "%(2)s"),
}
_SYMBOLS = {
    **{name: name for name in ("TeX", "LaTeX", "BibTeX", "XeTeX", "LuaTeX", "AmS")},
    **dict.fromkeys(("newline", "linebreak", "quad", "qquad", "hfill", "and"), " "),
    **dict.fromkeys(("enspace", "thinspace", "nobreakspace"), " "),
    "LaTeXe": "LaTeX2e", "par": "\n\n", "copyright": "©", "degree": "°", "textgreater": ">",
    "textless": "<", "textbar": "|", "textunderscore": "_", "slash": "/", "euro": "€",
    "pounds": "£", "ddag": "‡", "checkmark": "✓", "glqq": "„", "grqq": "“", "og": "«", "fg": "»",
    "textquotedbl": '"', "textbraceleft": "{", "textbraceright": "}",
}  # fmt: skip
_HEADINGS = ("part", "chapter", "section", "subsection", "subsubsection")


# A step of the parser takes some 15 us. Recorded papers need 14 to 44 steps for 1,000 characters of
# prose.
MAX_STEPS = 60_000  # for up to a million characters of prose, and for each further million
# Signs of markup are 4 to 7 % of the characters of papers, and 11 % of a chapter of formulas.
MAX_SIGN_SHARE = 0.2
MIN_SIGNS = 40_000  # a source with fewer is always read
_SIGNS = ("\\", "{", "}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)|[{}]", re.DOTALL)

_BRACKETS = ("[", "]")
_BLANKS_BEFORE = r"([ \t]{0,200}+\n?+[ \t]{0,200}+)"
# Text that pylatexenc reads one sign a token: all but signs that begin markup or are doubled. The
# first may be a macro's star.
_TEXT = r"[^\\{}\[\]$%~&'`!?-]++|'(?!')|`(?!`)|-(?!-)|[!?](?!`)"
_WORDS = re.compile(_BLANKS_BEFORE + rf"(?![\s*])((?:{_TEXT}|[\[\]])++)")
_WORDS_IN_BRACKETS = re.compile(_BLANKS_BEFORE + rf"(?![\s*])((?:{_TEXT})++)")
# Tokens as pylatexenc reads them: a macro with the blanks before and after it, the begin or end of
# an environment, a brace, and the end of a paragraph. Other signs, and other letters than those of
# ASCII, are left to it.
_MACRO = re.compile(
    _BLANKS_BEFORE + r"\\(?!begin|end)([A-Za-z]++)([ \t]*+\n?+[ \t]*+)(?![^\x21-\x7e])"
)
_PARAGRAPH = re.compile(r"[ \t]{0,200}+\n\n")
_ENVIRONMENT = re.compile(_BLANKS_BEFORE + r"\\(begin|end)(\s*\{([\w* ._-]+)\})?")
_BRACES = {"{": "brace_open", "}": "brace_close"}


class _Walker(latexwalker.LatexWalker):  # type: ignore[misc]  # pylatexenc has no types
    """Parser that reads words at once, for which pylatexenc needs 10 us a character.

    Raises:
        ItemUnavailable: ``too_much_markup``: the markup would take, or takes, more than MAX_STEPS.
    """

    def __init__(self, markup: str, **options: Any) -> None:
        self._steps_left = MAX_STEPS * max(1.0, len(markup) / 1e6)
        if _fewest_steps(markup) > self._steps_left:
            raise _too_much()
        super().__init__(markup, **options)

    def get_token(
        self, pos: int, include_brace_chars: Any = None, environments: bool = True, **options: Any
    ) -> Any:
        """Return the token at a position; single characters where a macro's argument is read."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _too_much()
        if environments and set(include_brace_chars or ()) <= {_BRACKETS}:
            pattern = _WORDS_IN_BRACKETS if include_brace_chars else _WORDS
            words = pattern.match(self.s, pos)
            if words:
                start = words.end(1)
                length = words.end() - start
                return latexwalker.LatexToken("char", words[2], start, length, words[1])
        token = self._read_environment(pos) if environments else None
        return (
            token
            or self._read_simple(pos)
            or super().get_token(pos, include_brace_chars, environments, **options)
        )

    def _read_environment(self, pos: int) -> Any:
        r"""Return the token of a ``\begin`` or ``\end``, for which pylatexenc copies the rest."""
        found = _ENVIRONMENT.match(self.s, pos)
        if found is None:
            return None
        if self.s[found.end(2) : found.end(2) + 1].isalpha():  # a macro such as \endgroup
            return None
        start = found.end(1)
        length = found.end() - start
        if found[4] is None:  # pylatexenc, too, reads the macro's name as text then
            return latexwalker.LatexToken("char", f"\\{found[2]}", start, length, found[1])
        kind = f"{found[2]}_environment"
        return latexwalker.LatexToken(kind, found[4], start, length, found[1])

    def _read_simple(self, pos: int) -> Any:
        """Return the token of a brace, of a paragraph's end, or of a macro of ASCII letters."""
        kind = _BRACES.get(self.s[pos : pos + 1])
        if kind:
            return latexwalker.LatexToken(kind, self.s[pos], pos, 1, "")
        macro = _MACRO.match(self.s, pos)
        if macro:
            start = macro.end(1)
            length = macro.end() - start
            return latexwalker.LatexToken("macro", macro[2], start, length, macro[1], macro[3])
        paragraph = _PARAGRAPH.match(self.s, pos)
        if paragraph:
            start = paragraph.end() - 2
            return latexwalker.LatexToken("char", "\n\n", start, 2, self.s[pos:start])
        return None


def _fewest_steps(markup: str) -> int:
    """Return the number of steps that a markup takes at least."""
    signs = _COMMAND.findall(markup)  # macros and braces
    return len(signs) + signs.count("\\item")  # an item's label is looked for


def _too_much() -> ItemUnavailable:
    return ItemUnavailable("too_much_markup", f"over {MAX_STEPS} pieces of markup in a megabyte")


class _Writer(latex2text.LatexNodes2Text):  # type: ignore[misc]  # pylatexenc has no types
    """Text writer that tolerates misused macros."""

    def nodelist_to_text(self, nodelist: Any) -> str:
        """Return the text of nodes; pylatexenc copies and searches all text before each of them."""
        return "".join(map(self.node_to_text, nodelist))

    def apply_simplify_repl(self, node: Any, simplify_repl: Any, what: str) -> str:
        """Return the text of a macro; an empty one if its arguments are missing."""
        try:
            if simplify_repl in _OWN_RULES:  # pylatexenc would inspect their signatures each time
                return str(simplify_repl(node, self))
            return str(super().apply_simplify_repl(node, simplify_repl, what))
        except (AttributeError, LookupError, TypeError, ValueError):
            # pylatexenc fails if an argument is missing. Drop the macro, not the whole paper.
            return ""


def _heading(node: Any, l2tobj: Any) -> str:
    return f"\n\n{l2tobj.node_arg_to_text(node, 2)}\n\n"


def _run_in_heading(node: Any, l2tobj: Any) -> str:
    return f"\n\n{l2tobj.node_arg_to_text(node, 2)} "


def _item(node: Any, l2tobj: Any) -> str:
    label = l2tobj.nodelist_to_text([node.nodeoptarg]) if node.nodeoptarg else "-"
    return f"\n\n{label} "


_OWN_RULES = frozenset({_heading, _run_in_heading, _item, units.to_quantity})
# Ties and tabs are frequent, and slow to parse. They stand for blanks, after which a macro has no
# argument.
_BLANK = "\ue002"
_BLANKS = re.compile(r"(\\.)|[~&]", re.DOTALL)


@functools.cache
def _grammar() -> Any:
    """Return the arguments that macros take, for pylatexenc's parser."""
    context = latexwalker.get_default_latex_context_db()
    shapes = {name: shape for name, (shape, _) in _MACROS.items()} | units.ARGUMENTS
    macros = [macrospec.MacroSpec(*shape) for shape in shapes.items()]
    context.add_context_category("tidemark", macros=macros, prepend=True)
    return context


@functools.cache
def _rules() -> Any:
    """Return pylatexenc's rules that replace macros by text."""
    context = latex2text.get_default_latex_context_db()
    rules: dict[str, Any] = {name: replacement for name, (_, replacement) in _MACROS.items()}
    rules |= _SYMBOLS | dict.fromkeys(_HEADINGS, _heading)
    rules |= dict.fromkeys(("paragraph", "subparagraph"), _run_in_heading)
    rules |= dict.fromkeys(units.ARGUMENTS, units.to_quantity) | {"item": _item}
    macros = [latex2text.MacroTextSpec(*rule) for rule in rules.items()]
    context.add_context_category("tidemark", macros=macros, prepend=True)
    return context


def to_text(markup: str, shield: Shield) -> str:
    """Convert simple markup to text, with one line per paragraph; see ``prose.simplify``."""
    markup = _BLANKS.sub(lambda sign: sign[1] or _BLANK, markup)
    walker = _Walker(markup, latex_context=_grammar(), tolerant_parsing=True)
    text = _Writer(_rules()).nodelist_to_text(walker.get_latex_nodes()[0]).replace(_BLANK, " ")
    paragraphs = map(mend, re.split(r"\n\s*\n", text))
    return shield.restore("\n\n".join(filter(None, paragraphs)))


def read_latex(files: Mapping[str, str]) -> Paper:
    """Extract a paper's prose like ``LatexReader.read``, but in this process, without limits."""
    shield = Shield()
    plain = shield_code(files, shield)
    styles = [plain[name] for name in plain if name.endswith(".sty")]
    joined = join_files(plain)
    _require_prose(joined)
    paper = choose_branches(joined)
    source = expand_terms(expand_macros(find_words(styles) + paper))
    bibliography = Bibliography([source, *(plain[name] for name in plain if name.endswith(".bbl"))])
    source = resolve_citations(resolve_references(source), bibliography)
    prose, has_introduction = find_prose(source, shield)
    text = to_text(prose, shield)
    if len(_CONTROL.findall(text)) > MAX_CONTROL_SHARE * len(text):
        raise ItemUnavailable("binary", "the text is control characters for the most part")
    return Paper(text, has_introduction)


def _require_prose(source: str) -> None:
    """Raise ItemUnavailable (``too_much_markup``) if a source has more markup than papers have."""
    signs = sum(map(source.count, _SIGNS))
    if signs > max(MIN_SIGNS, MAX_SIGN_SHARE * len(source)):
        raise ItemUnavailable("too_much_markup", f"{signs} of {len(source)} characters are markup")


def main() -> None:
    """Run the worker: read one JSON line per paper from stdin, and answer with one JSON line."""
    time_limit_s = float(sys.argv[1])
    memory_bytes = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_REAL, time_limit_s)  # SIGALRM then ends this process
        try:
            answer = asdict(read_latex(json.loads(line)))
        except ItemUnavailable as error:
            answer = {"reason": error.reason, "message": str(error)}
        except RecursionError:
            answer = {"reason": "parse_error", "message": "groups are nested too deeply"}
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
