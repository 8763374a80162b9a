"""The part of a model's response that answers: no reasoning, and no further messages.

Models mark their reasoning in many ways. A mark is known here if a public model writes it.
``<think>`` and similar names are of DeepSeek, Qwen, EXAONE and Seed. ``[THINK]`` is of Mistral,
``◁think▷`` of Kimi, and ``<|START_THINKING|>`` of Command. ``<|begin_of_thought|>`` is of Sky-T1,
``<|inner_prefix|>`` of Apertus. ``<unused94>`` and ``<|channel>`` are of Gemma. A role
``think`` is of s1, and channels of the harmony format of gpt-oss. ``[BEGIN FINAL RESPONSE]`` is of
Apriel, whose reasoning begins with the words "Here are my reasoning steps:".
``<|open|>think<|sep|>`` is of Kimi K3, ``to=self<|message|>`` of Muse Glimmer, and
``<|plamo:begin_think:plamo|>`` of PLaMo 3. ``[unused16]`` is of openPangu, and a role
``assistant/think`` of HyperCLOVA X.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

_WORD = (
    "(?:(?:think|thinking|reason|reasoning)(?:[_-](?:process|steps?|trace|content|fast(?:er)?))?|thoughts?"
    "|scratch[_-]?pad|analysis|cot|cot_budget_reflect|chain[_-]of[_-]thoughts?"
    "|reflection|reflexion|inner[_-]monologue|antthinking|(?:思考|推理)(?:过程|過程|プロセス)?"
    "|생각|추론|размышлени[ея]|рассуждени[ея]|мысли|pensamiento|razonamiento|pensées?|gedanken)"
)
# seed:think, longcat_think, M2_7think, and think:opensource of Hunyuan
_NAME = rf"(?:[\w.-]{{1,20}}[:|_\d])?{_WORD}(?::(?!end|close|stop)[\w.-]{{1,20}})?"
_ENDS = r"(?:end|close|stop)"
_LT = r"(?:<|＜|&lt;)"
_GT = r"\s?(?:>|＞|&gt;)"
_BAR = "[|\uff5c]"
_JOIN = "[_\u2581 :]"  # DeepSeek writes the second one, Solar the last one
_MAKER = r"(?:\w{1,20}:)?"
_OF = rf"(?:of{_JOIN})?"
_OPENS = (
    rf"{_LT}\s?(?!{_ENDS}[_-]){_NAME}(?:[_-](?:start|begin))?(?:\s[^<>\n]{{1,60}})?{_GT}"
    rf"|<{_BAR}{_MAKER}(?:(?:start|begin){_JOIN}{_OF})?(?:internal{_JOIN})?{_WORD}"
    rf"(?:{_JOIN}(?:start|begin))?(?::(?!{_ENDS})\w{{1,20}})?{_BAR}>|\[THINK\]|◁think▷"
    r"|(?-i:\[(?:BEGIN_)?(?:THINK|THINKING|THOUGHT|REASONING)\])"
    r"|<\|inner_prefix\|>|<unused94>|<\|channel>(?:thought|analysis)\b"
    r"|<\|im_start\|>(?:assistant/)?think\b|\[unused16\]|<\|open\|>think<\|sep\|>"
    r"|(?:<\|start\|>\s*assistant\s*)?\bto=self<\|message\|>"
    # Each message of the harmony format names its channel. Only the last one, "final", answers.
    r"|<\|channel\|>\s*(?:analysis|commentary)\b|here is my thought process:"
    r"|\A\s*here are my reasoning steps:\s*\n|【(?:思考|推理)(?:过程|過程)?】"
    r"|<start_working_out>"
)
_CLOSES = (
    rf"{_LT}\s?/{{1,2}}\s?{_NAME}{_GT}|\[/THINK\]|◁/think▷"
    rf"|{_LT}(?:{_ENDS}[_-](?:of[_-])?{_WORD}|{_WORD}[_-]{_ENDS}){_GT}"
    rf"|<{_BAR}{_MAKER}(?:end{_JOIN}{_OF}(?:internal{_JOIN})?{_WORD}|/{_WORD}|{_WORD}{_JOIN}end)"
    rf"(?::\w{{1,20}})?{_BAR}>"
    r"|\[unused17\]|<\|close\|>think<\|sep\|>|<\|open\|>response<\|sep\|>"
    # These also begin the answer to a next question, and close only what is open.
    r"|(?P<turn><\|im_start\|>assistant\n"
    r"|(?:<\|start\|>\s*assistant\s*)?\bto=user<\|message\|>|<\|start\|>\s*assistant<\|message\|>)"
    r"|(?-i:\[(?:/|END_)(?:THINK|THINKING|THOUGHT|REASONING)\])"
    r"|<\|inner_suffix\|>|<unused95>|<channel\|>|<\|im_start\|>answer\b"
    r"|(?P<final><\|channel\|>\s*final\b[^\n]{0,60}?<\|message\|>)|here is my response:"
    r"|\[BEGIN FINAL RESPONSE\]|【/(?:思考|推理)(?:过程|過程)?】|<end_working_out>"
)
# Elements that hold steps before an answer, or an explanation after it.
_STEP = re.compile(
    r"<(?P<end>/)?(?P<name>steps?|plan|planning|internal|monologue|deliberation|explanation"
    r"|rationale|critique|verify|verification|evaluation|draft|workings?|brainstorm(?:ing)?"
    r"|exploration|count|reward|logic|details)(?P<more>[ \d][^<>\n]{0,60})?>",
    re.IGNORECASE,
)
# Seed-OSS states within its reasoning how much of it is left.
_BUDGET = re.compile(r"<seed:cot_budget_reflect>[^<]{0,2000}</seed:cot_budget_reflect>")
_THOUGHT_DETAILS = re.compile(r"\btype=.?(?:reasoning|thinking)", re.IGNORECASE)  # Open WebUI
_MARK = re.compile(rf"(?P<opens>{_OPENS})|(?P<closes>{_CLOSES})", re.IGNORECASE)
# The harmony format without its control tokens, which decoders remove.
_BARE_CHANNEL = re.compile(r"\s*(?:analysis|commentary)")
_BARE_ANALYSIS = re.compile(rf"{_BARE_CHANNEL.pattern}(?=[A-Z\"'(\d]|\Z)")
_BARE_FINAL = re.compile(r"assistant\s?final(?=\W|[A-Z\d])")
# Control tokens that are parts of marks; a decoder that removes them makes reasoning an answer.
_PARTS = re.compile(
    rf"{_OPENS}|{_CLOSES}|<\|(?:channel|message|start|end|return|call)\|>|<\|channel>"
    r"|<\|(?:open|close|sep|eom|eot)\|>|<\|plamo:(?:begin|end)_|:plamo\|>",
    re.IGNORECASE,
)
_OF_MARKS = re.compile(r"channel|<\|(?:open|eom)\||plamo")
_ANSWER_TOKENS = re.compile(
    r"<\|(?:start|end|begin_of|end_of)_?(?:response|solution|text)\|>|\[END FINAL RESPONSE\]"
    r"|<\|(?:open|close)\|>response<\|sep\|>|(?:<\|start\|>\s*assistant\s*)?\bto=user<\|message\|>",
    re.IGNORECASE,
)
# Where a model goes on with the user's next message, which is no part of its answer.
_NEXT_TURN = re.compile(
    r"\n(?:#{1,3} ?)?(?:Human|User|Assistant|Instruction) ?:|</s>|(?<=\S)\s*\[/?INST\]"
    r"|<(?:start|end)_of_turn>|<[|｜](?:im_start|im_end|eot_id|end|endoftext|end▁of▁sentence"
    r"|start_header_id|return|call|(?i:user|assistant|system)|eom|eot|end_of_msg|plamo:tag)[|｜]>|<turn\|>|\[unused10\]"
)
_MAX_QUESTIONS = 4  # number of places at which ``before_next_question`` looks
# Where a model that continues texts asks itself a further question.
_NEXT_QUESTION = re.compile(
    r"\n[ #*>-]{0,8}(?:(?:Question|Problem|Puzzle)(?: ?#?\d{1,3})? ?(?:[:.*]|\r?\n)|Q ?:"
    r"|This question was asked on |Here is a puzzle,)"
)


def answering_part(response: str) -> str:
    """Return a response without reasoning, and without further messages.

    Text before a closing mark is reasoning, even without an opening mark. If reasoning does not
    end, the text after its opening mark is left out.
    """
    text = _ANSWER_TOKENS.sub("", _without_steps(_without_thoughts(response)))
    return _NEXT_TURN.split(text, maxsplit=1)[0]


def _without_thoughts(response: str) -> str:
    """Return a response without reasoning, that is text between opening and closing marks."""
    response = _BUDGET.sub("", response)
    # The harmony format, if a decoder has removed its control tokens.
    if _BARE_CHANNEL.match(response):
        parts = _BARE_FINAL.split(response)
        if len(parts) > 1:
            return parts[-1]
        if _BARE_ANALYSIS.match(response):
            return ""
    kept: list[str] = []  # pieces of the answer
    is_open = False  # True inside reasoning
    begin = 0  # of the present piece of the answer
    for mark in _MARK.finditer(response):
        if mark["turn"] and not is_open:  # a further message, after the answer
            continue
        if mark["closes"]:
            # Text before a closing mark is reasoning, even if its opening mark is in the prompt.
            if not is_open or mark["final"]:  # only the channel "final" is the answer
                kept.clear()
            is_open = False
            begin = mark.end()
        elif not is_open:
            kept.append(response[begin : mark.start()])
            is_open = True
    if not is_open:
        kept.append(response[begin:])
    return "".join(kept)


def _without_steps(response: str) -> str:
    """Return a response without steps and explanations; unchanged if nothing else would be left."""
    kept: list[str] = []
    open_name = ""
    begin = 0
    for mark in _STEP.finditer(response):
        name = mark["name"].lower()
        if mark["end"]:
            if name == open_name:
                open_name = ""
                begin = mark.end()
        elif not open_name and (name != "details" or _THOUGHT_DETAILS.search(mark["more"] or "")):
            kept.append(response[begin : mark.start()])
            open_name = name
    if open_name:
        return "".join(kept)
    kept.append(response[begin:])
    rest = "".join(kept)
    return rest if rest.strip() else response


def ends_in_thought(text: str, is_open: bool = False) -> bool:
    """Return True if a text ends inside reasoning; ``is_open``: True if it begins inside."""
    for mark in _MARK.finditer(_BUDGET.sub("", text)):
        is_open = mark["opens"] is not None
    return is_open


def open_thought(prompt: str) -> str:
    """Return the mark that opens reasoning at the end of a prompt, or an empty string."""
    last = None
    for mark in _MARK.finditer(prompt):
        last = mark
    if last is None or not last["opens"]:
        return ""
    if prompt[last.end() :].replace("<|message|>", "").strip():
        return ""
    return last["opens"]


def thinking_tokens(tokens: Iterable[str]) -> frozenset[str]:
    """Return the control tokens that are needed to distinguish reasoning from an answer."""
    parts = frozenset(token for token in tokens if _PARTS.fullmatch(token))
    # "<|end|>" and the like also end messages of models that mark no reasoning.
    is_marked = any(_MARK.fullmatch(token) or _OF_MARKS.search(token) for token in parts)
    return parts if is_marked else frozenset()


def before_next_question(text: str) -> str:
    """Return the text before the first further question that follows an answer."""
    for found in islice(_NEXT_QUESTION.finditer(text), _MAX_QUESTIONS):
        before = text[: found.start()].rstrip("*`\r\n ")
        # Such a text introduces the question, and is no answer: "Consider this puzzle:".
        is_introduction = before.endswith(":") and not before.endswith(("nswer:", " is:"))
        if before and not is_introduction:
            return before
    return text
