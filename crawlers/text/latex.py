"""Conversion of LaTeX papers to plain text, in a worker process with time and memory limits.

The text goes from the introduction to the bibliography, appendix or acknowledgements. Title,
authors, abstract, figures, tables, algorithms, footnotes, citations and references are removed.
Formulas stay as LaTeX source in ``$…$``. Papers are untrusted, so included files are looked up only
in the package, never on the disk. One worker process (``python -m crawlers.text.latex``) serves
many papers, since starting it takes longer than converting a paper.
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
from crawlers.text.latex_source import decode_files, find_prose, join_files, strip_comments

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
        ``too_large`` (inputs or macros expand without bound); ``binary`` (too many control
        characters); ``parse_error`` (the worker died).
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
        return subprocess.Popen(
            [sys.executable, "-m", "crawlers.text.latex", *self._limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[2],  # the folder that has the package ``crawlers``
        )

    def _stop(self) -> str:
        """End the worker if one runs; return how it ended, as text for an error message."""
        if self._process is None:
            return "was not running"
        process, self._process = self._process, None
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
    **dict.fromkeys(("underline", "uline", "url", "enquote"), ("{", "%s")),
    **dict.fromkeys(("phantom", "hphantom", "vphantom", "ding"), ("{", "")),
    "maketitle": ("", ""),
    "\n": ("", " "),  # a backslash at the end of a line
    "S": ("", "§"),
    "P": ("", "¶"),
    "rule": ("[{{", ""),
    "ensuremath": ("{", "$%s$"),
    "href": ("{{", "%(2)s"),
    "hyperlink": ("{{", "%(2)s"),
    "hyperref": ("[{", "%(2)s"),
    "textcolor": ("[{{", "%(3)s"),
    "colorbox": ("[{{", "%(3)s"),
    "raisebox": ("{[[{", "%(4)s"),
    "makebox": ("[[{", "%(3)s"),
    "parbox": ("[[[{{", "%(5)s"),
    "rotatebox": ("[{{", "%(3)s"),
    "scalebox": ("{[{", "%(3)s"),
    "resizebox": ("*{{{", "%(4)s"),
}
_BLOCKS = {  # environments that become paragraphs, with their arguments
    **dict.fromkeys(("quote", "quotation", "center", "displayquote"), ""),
    **dict.fromkeys(("itemize", "enumerate", "description", "compactitem", "compactenum"), "["),
    **dict.fromkeys(("theorem", "lemma", "proposition", "corollary", "definition"), "["),
    **dict.fromkeys(("proof", "remark", "example", "tcolorbox", "mdframed", "framed"), "["),
    "minipage": "[[[{",
    "multicols": "{",
    "spacing": "{",
}
_MATHS = {"flalign": "", "alignat": "{", "IEEEeqnarray": "[{", "displaymath": "", "math": ""}
_VERBATIM = ("verbatim", "verbatim*", "Verbatim", "lstlisting", "minted")
# Placeholders for white space in verbatim text, so that the joining of lines keeps it.
_SHIELD = {ord(" "): 0xE000, ord("\n"): 0xE001, ord("\t"): 0xE002}
_UNSHIELD = {shield: character for character, shield in _SHIELD.items()}


class _Writer(latex2text.LatexNodes2Text):  # type: ignore[misc]  # pylatexenc has no types
    """Text writer that keeps formulas as source in dollar signs, and tolerates misused macros."""

    def apply_simplify_repl(self, node: Any, simplify_repl: Any, what: str) -> str:
        try:
            return str(super().apply_simplify_repl(node, simplify_repl, what))
        except (AttributeError, LookupError, TypeError, ValueError):
            # pylatexenc fails if an argument is missing. Drop the macro, not the whole paper.
            return ""

    def math_node_to_text(self, node: Any) -> str:
        source = " ".join("".join(child.latex_verbatim() for child in node.nodelist).split())
        source = source.replace(r"\ensuremath", "")  # this macro has no effect in formulas
        is_inline = getattr(node, "displaytype", "display") == "inline"
        return f"${source}$" if is_inline else f"\n${source}$\n"


def _heading(node: Any, l2tobj: Any) -> str:
    return f"\n\n{l2tobj.node_arg_to_text(node, 2)}\n\n"


def _run_in_heading(node: Any, l2tobj: Any) -> str:
    return f"\n\n{l2tobj.node_arg_to_text(node, 2)} "


def _item(node: Any, l2tobj: Any) -> str:
    label = l2tobj.nodelist_to_text([node.nodeoptarg]) if node.nodeoptarg else "-"
    return f"\n\n{label} "


def _verbatim(node: Any) -> str:
    inner = re.sub(r"\A\\begin\{[^}]*\}(?:\[[^\]]*\])?(?:\{\w*\})?|\\end\{[^}]*\}\Z", "",
                   node.latex_verbatim())  # fmt: skip
    return "\n\n" + inner.strip("\n").translate(_SHIELD) + "\n\n"


def _verb(node: Any) -> str:
    return str(node.nodeargd.verbatim_text)


@functools.cache
def _grammar() -> Any:
    """Return the arguments that macros and environments take, for pylatexenc's parser."""
    context = latexwalker.get_default_latex_context_db()
    environments = [macrospec.EnvironmentSpec(*block) for block in _BLOCKS.items()]
    environments += [
        macrospec.EnvironmentSpec(name + star, arguments, is_math_mode=True)
        for name, arguments in _MATHS.items()
        for star in ("", "*")
    ]
    environments += [
        macrospec.EnvironmentSpec(name, macrospec.VerbatimArgsParser("verbatim-environment"))
        for name in _VERBATIM
    ]
    macros = [macrospec.MacroSpec(name, shape) for name, (shape, _) in _MACROS.items()]
    context.add_context_category("tidemark", macros=macros, environments=environments, prepend=True)
    return context


@functools.cache
def _rules() -> Any:
    """Return pylatexenc's rules that replace macros and environments by text."""
    context = latex2text.get_default_latex_context_db()
    rules: dict[str, Any] = {name: replacement for name, (_, replacement) in _MACROS.items()}
    rules |= dict.fromkeys(("part", "chapter", "section", "subsection", "subsubsection"), _heading)
    rules |= dict.fromkeys(("paragraph", "subparagraph"), _run_in_heading)
    rules |= {"item": _item, "verb": _verb}
    blocks: dict[str, Any] = dict.fromkeys(_BLOCKS, "\n\n%s\n\n")
    blocks |= dict.fromkeys(_VERBATIM, _verbatim)
    blocks |= {
        name + star: latex2text.fmt_equation_environment for name in _MATHS for star in ("", "*")
    }
    context.add_context_category(
        "tidemark",
        macros=[latex2text.MacroTextSpec(*rule) for rule in rules.items()],
        environments=[latex2text.EnvironmentTextSpec(*rule) for rule in blocks.items()],
        prepend=True,
    )
    return context


def to_text(body: str) -> str:
    """Convert LaTeX markup to text, with one line per paragraph."""
    walker = latexwalker.LatexWalker(body, latex_context=_grammar(), tolerant_parsing=True)
    text = _Writer(_rules()).nodelist_to_text(walker.get_latex_nodes()[0])
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in paragraphs if part).translate(_UNSHIELD)


def read_latex(files: Mapping[str, str]) -> Paper:
    """Extract a paper's prose like ``LatexReader.read``, but in this process, without limits."""
    plain = {name: strip_comments(text) for name, text in files.items()}
    prose, has_introduction = find_prose(join_files(plain))
    text = to_text(prose)
    if len(_CONTROL.findall(text)) > MAX_CONTROL_SHARE * len(text):
        raise ItemUnavailable("binary", "the text is control characters for the most part")
    return Paper(text, has_introduction)


def main() -> None:
    """Run the worker: read one JSON line per paper from stdin, and answer with one JSON line."""
    time_limit_s, memory_bytes = float(sys.argv[1]), int(sys.argv[2])
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
