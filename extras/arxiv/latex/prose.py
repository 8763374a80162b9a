r"""The prose of a LaTeX document, from introduction to back matter, as simple markup.

The markup that remains has no floats, environments, citations or lengths. Its braces are balanced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from extras.arxiv.latex.macros import BRACE, match_braces
from extras.arxiv.latex.shield import GONE, Shield, shield_formulas

_BEGIN_DOCUMENT = re.compile(r"\\begin\s*\{document\}")
_INTRODUCTION = re.compile(
    r"(?:\\IEEEraisesectionheading\s*\{\s*)?"
    r"\\(?:section|chapter)\*?\s*(?:\[[^\]]{0,500}\])?\s*\{[^}]{0,200}introduction",
    re.IGNORECASE,
)
_FRONT_MATTER_END = re.compile(r"\\end\s*\{abstract\}|\\maketitle(?![A-Za-z])")
# A numbered section of acknowledgements is part of the paper; without a number, it is back matter.
_BACK_MATTER = re.compile(
    r"\\(?:(?:print|the)?bibliography|appendix|appendices|acknowledg[a-z]*|ack)(?![A-Za-z])"
    r"|\\begin\s*\{(?:thebibliography|appendix|appendices|acks|acknowledg[a-z]*)\*?\}"
    r"|\\(?:sub)*(?:section|chapter|paragraph)\*?\s*(?:\[[^\]]{0,500}\])?\s*\{[^}]{0,40}?"
    r"(?:appendix|appendices|references\s*\}|bibliography)"
    r"|\\(?:(?:sub)*(?:section|chapter)\*|(?:sub)*paragraph\*?)\s*\{[^}]{0,40}?acknowledg"
    r"|\\bmhead\*?\s*\{[^}]{0,40}?acknowledg|\\backmatter(?![A-Za-z])"
    r"|\{\s*\\(?:bf|bfseries|it|em|sc)\s\s*acknowledg|\\text(?:bf|it|sc)\s*\{\s*acknowledg"
    r"|\\end\s*\{document\}",
    re.IGNORECASE,
)
_FLOAT = re.compile(
    r"\\(begin|end)\s*\{(?:(?:sub|wrap|sideways|SC|teaser)?(?:figure|table)|floatingfigure|listing"
    r"|algorithm|algorithmic|algorithm2e|tikzpicture|tikzcd|pgfpicture|forest|picture|circuitikz"
    r"|longtable|tabular[xy]?|tabulary|tabu|tblr|(?:long|tall)tblr|(?:super|x)tabular|deluxetable"
    r"|NiceTabular|ctable|threeparttable|mathpar|prooftree|abstract|keywords?|CCSXML|IEEEkeywords"
    r"|highlights|IEEEbiography(?:nophoto)?)\*?\}"
)
# Macros without text of their own, by the number of their arguments.
_SILENT = {
    0: "footnotemark pagebreak nopagebreak linebreak nolinebreak allowdisplaybreaks newpage",
    1: "footnote footnotetext thanks author authors affil affiliation altaffiliation address email"
    " mail institute institution title titlerunning authorrunning date keywords Keywords abstract"
    " marginpar marginnote todo caption label index glossary bibliographystyle nocite orcid"
    " includegraphics includesvg includepdf epsfig epsfbox epsffile psfig plotone graphicspath"
    " vspace hspace addvspace linespread setstretch enlargethispage fontfamily fontseries"
    " fontshape fontencoding color pagecolor rowcolor cellcolor selectlanguage geometry"
    " pagestyle thispagestyle pagenumbering hypersetup lstset tikzset pgfplotsset sisetup tcbset"
    " captionsetup setlist usetikzlibrary usepackage theoremstyle stepcounter refstepcounter"
    " newcounter newlength newsavebox usebox hyphenation markright pacs preprint received accepted"
    " acused acknow significancestatement authorcontributions authordeclaration equalauthors"
    " correspondingauthor leadauthor deleted"
    " journal software facility facilities ccsdesc lstinputlisting AtBeginDocument AtEndDocument"
    " excludecomment includecomment MakeShortVerb DefineShortVerb lstMakeShortInline",
    2: "captionof setlength addtolength settowidth setcounter addtocounter fontsize colorlet"
    " lstdefinestyle lstdefinelanguage inputminted numberwithin markboth plottwo newcommand"
    " renewcommand providecommand DeclareMathOperator newtheorem newcolumntype sbox addtocontents"
    " pdfbookmark newminted newmintinline newmint",
    3: "definecolor addcontentsline newenvironment renewenvironment lstnewenvironment"
    " DefineVerbatimEnvironment RecustomVerbatimEnvironment",
    4: "usefont titlespacing",
    5: "titleformat",
}
_NUM_ARGUMENTS = {name: number for number, names in _SILENT.items() for name in names.split()}
_SILENT_MACRO = re.compile(rf"\\({'|'.join(_NUM_ARGUMENTS)}|icml[a-z]*)(?![A-Za-z])\*?")
_OPTIONS = re.compile(r"(?:\s*\[[^\]]{0,500}\])+")
_NEXT = re.compile(r"\s*(\\[A-Za-z@]+)?")
_LENGTH = re.compile(  # assignments of plain TeX, without braces, and characters by number
    r"\\(?:[vh]skip|kern|[hv]size|looseness|par(?:indent|skip|sep)|(?:base|)lineskip|tabcolsep"
    r"|columnsep|text(?:width|height)|(?:top|oddside|evenside)margin|[hv]offset|itemsep|topsep"
    r"|(?:left|right|abovedisplay|belowdisplay)skip|emergencystretch|hangindent|fboxsep|tolerance"
    r"|(?:hyphen|widow|club|)penalty|[hv]badness)(?![A-Za-z])\s*=?\s*"
    r"(?:-?[\d.]+\s*(?:true\s*)?(?:pt|in|cm|mm|em|ex|bp|sp)?|)"
    r"(?:\\(?:baselineskip|textwidth|linewidth|columnwidth))?"
    r"(?:\s*(?:plus|minus)\s*-?[\d.]+\s*(?:pt|in|cm|mm|em|ex|fil+))*"
    r"|\\char\s*[\"'`]?[\dA-F]+"
)
_QUOTE = re.compile(r"\\([lr])q(?![A-Za-z])[ \t]*\n?")
_LINE_END = re.compile(r"\\\\\*?[ \t]*(?:\[\s*-?[\d.]*\s*\\?[a-z]+\s*\])?")
_MACRO_OPTIONS = re.compile(
    r"(\\(?!item\b|unit\b)[A-Za-z]+\*?)(?:\s*\[[^\[\]{}\n]{0,500}\])+(?=\s*\{)"
)
_BEGIN_OR_END = re.compile(
    r"\\(?:begin|end)\s*\{(?P<name>[^{}]*)\}(?:\s*\[[^\]\n]{0,500}\]|\{[^{}\s]{0,40}\})*"
)
_WITHIN_PARAGRAPH = re.compile(r"subequations|linenomath\*?|(?:text)?(?:small|normalsize|large)")
_MAX_DEPTH = 40  # groups nested more deeply are opened; pylatexenc is recursive


def find_prose(source: str, shield: Shield) -> tuple[str, bool]:
    """Return the prose of a document, as markup, and True if it has an introduction."""
    body, has_introduction = cut_body(source)
    return simplify(body, shield), has_introduction


def simplify(body: str, shield: Shield) -> str:
    """Return markup without floats, silent macros and environments; formulas go to the shield."""
    body = _QUOTE.sub(lambda match: "`" if match[1] == "l" else "'", body)
    body = drop_silent_macros(drop_floats(body))
    body = shield_formulas(body, shield)
    body = _MACRO_OPTIONS.sub(r"\1", _LINE_END.sub(" ", _LENGTH.sub(GONE, body)))
    return balance(_BEGIN_OR_END.sub(_separate, body))


def _separate(edge: re.Match[str]) -> str:
    return GONE if _WITHIN_PARAGRAPH.fullmatch(edge["name"]) else "\n\n"


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
    """Replace figures, tables, algorithms and drawings, nested ones included, by GONE."""
    kept = []
    position = 0
    depth = 0
    for match in _FLOAT.finditer(text):
        if match[1] == "begin":
            if depth == 0:
                kept += [text[position : match.start()], GONE]
                position = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                position = match.end()
    return "".join([*kept, text[position:]])


def drop_silent_macros(text: str) -> str:
    """Replace footnotes, captions, authors, lengths and the like, with arguments, by GONE."""
    kept = []
    position = 0
    ends = match_braces(text)
    for match in _SILENT_MACRO.finditer(text):
        if match.start() < position:  # the match is inside removed text
            continue
        kept += [text[position : match.start()], GONE]
        position = _skip_arguments(text, match.end(), _NUM_ARGUMENTS.get(match[1], 9), ends)
    return "".join([*kept, text[position:]])


def _skip_arguments(text: str, position: int, number: int, ends: Mapping[int, int]) -> int:
    """Return the index after at most ``number`` arguments in braces, and after their options."""
    for _ in range(number):
        options = _OPTIONS.match(text, position)
        following = _NEXT.match(text, options.end() if options else position)
        start = following.end() if following else position
        if start in ends:
            position = ends[start]
        elif following and following[1] and number > 1:  # the name of a length or counter
            position = start
        else:
            break
    options = _OPTIONS.match(text, position) if number == 0 else None
    return options.end() if options else position


def balance(text: str) -> str:
    """Remove braces without a partner, and braces nested too deeply for a recursive parser."""
    dropped: list[int] = []
    opened: list[int] = []
    for found in BRACE.finditer(text):
        brace = found[1]
        index = found.end() - 1
        if brace == "{":
            opened.append(index)
        elif brace and not opened:
            dropped.append(index)
        elif brace and len(opened) > _MAX_DEPTH:
            dropped += [opened.pop(), index]
        elif brace:
            opened.pop()
    pieces = []
    position = 0
    for index in sorted(dropped + opened):
        pieces.append(text[position:index])
        position = index + 1
    return "".join([*pieces, text[position:]])
