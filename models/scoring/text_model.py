"""A model's tokenizer, as used for scoring: the tokens of a text, and the prefix before a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jinja2
import numpy as np
from transformers import PreTrainedTokenizerFast

from core.cells.record import TokenizerFacts
from core.errors import NotMeasurable
from models.scoring.accounting import Accountant, TokenizedText, explained
from models.scoring.control import control_ids
from models.scoring.protocol import ScoringProtocol
from models.scoring.scorer import Tokens
from models.weights.files import MODEL_FAILURES, first_line

_QUESTION = "tidemark:question"  # is in no chat template
# Some chat templates state today's date, but losses must not depend on the date. So all templates
# get the default date of Llama's templates.
_ALWAYS_THAT_DAY = "{%- macro strftime_now(format) -%}26 Jul 2024{%- endmacro -%}"


class Tokenizer(Protocol):
    """Splits texts into tokens and counts the text that each token covers."""

    def tokenize(
        self, texts: Sequence[str], special_tokens: bool = False, as_text: bool = False
    ) -> list[TokenizedText]:
        """Tokenize texts.

        ``special_tokens``: True to add the tokenizer's special tokens. ``as_text``: True to read
        control tokens that are spelled in a text as text.
        """


@dataclass(frozen=True)
class TextModel:
    """A tokenizer and its special tokens.

    Attributes:
        vocabulary_size: number of ids; a token with no token before it costs ln(vocabulary_size).
        start_token: id of BOS, or of EOS if there is no BOS, or None if there is neither.
        newline_token: first id of a line break, special tokens included, or None.
        encoded_bos: tokens of BOS as a text, with the special tokens that the tokenizer adds.
        byte_tokens: ids of the tokens for the bytes 0 to 255, (256,), or None without such tokens.
        chat_prefix: function that returns the ids of a filled template, or None without a template.
        chat_text: function that puts a question into the template, or None without a template.
        accountant: the tokenizer if texts can spell its control tokens, else None.
    """

    tokenizer: Tokenizer
    vocabulary_size: int
    start_token: int | None
    bos_token: int | None = None
    eos_token: int | None = None
    newline_token: int | None = None
    encoded_bos: tuple[int, ...] = ()
    start_text: str | None = None
    byte_tokens: Tokens | None = field(default=None, compare=False)
    chat_prefix: Callable[[], tuple[int, ...]] | None = None
    chat_text: Callable[[str], str] | None = None
    accountant: Accountant | None = field(default=None, compare=False)

    def quoted_ids(
        self, prompt: str, quoted: str, continuation: str = "", special_tokens: bool = False
    ) -> Tokens | None:
        """Return the ids of a prompt and its continuation, or None if no quotation needs care."""
        # ``quoted`` is a part of the prompt that others wrote, as is the continuation. Control
        # tokens that these spell are read as text, and as control tokens in the prompt's rest.
        accountant = self.accountant
        quoted = quoted.strip()
        if accountant is None or not quoted:
            return None
        control = accountant.control
        if not control.are_in(quoted) and not control.are_in(continuation):
            return None
        marked = quoted.join(map(control.marked, self._around(prompt, quoted)))
        return accountant.tokenize_marked(marked + continuation, special_tokens)

    def _around(self, prompt: str, quoted: str) -> list[str]:
        """Return the parts of a prompt before and after its quotation."""
        # A template may have the same text as the quotation, so another question shows the place.
        if self.chat_text is not None and prompt.strip() != quoted:
            around = self.chat_text(_QUESTION).split(_QUESTION)
            whole = quoted.join(around)
            excess = len(whole) - len(prompt)  # blanks at the end, which the caller cut off
            if whole.startswith(prompt) and not whole[len(prompt) :].strip():
                around[-1] = around[-1][: len(around[-1]) - excess]
                return around
        return prompt.split(quoted)

    @property
    def facts(self) -> TokenizerFacts:
        """The facts of the tokenizer that are stored with the losses."""
        return TokenizerFacts(
            vocabulary_size=self.vocabulary_size,
            start_token=self.start_text,
            has_byte_tokens=self.byte_tokens is not None,
        )

    def prefix(self, protocol: ScoringProtocol) -> tuple[int, ...]:
        """Return the token ids before each window's text; empty if the tokenizer has none.

        Raise NotMeasurable if the protocol requires a prefix that the tokenizer lacks.
        """
        if protocol.prefix == "chat":
            if self.chat_prefix is None:
                raise NotMeasurable(
                    f"protocol {protocol.name} needs a chat template and the tokenizer has none; "
                    "use the default protocol"
                )
            return self.chat_prefix()
        ids = {
            "none": (),
            "start": _as_tuple(self.start_token),
            "bos": _as_tuple(self.bos_token),
            "eos": _as_tuple(self.eos_token),
            "newline": _as_tuple(self.newline_token),
            "encoded-bos": self.encoded_bos,
        }[protocol.prefix]
        if not ids and protocol.needs_prefix:
            raise NotMeasurable(
                f"protocol {protocol.name} needs a start token and the tokenizer has none; "
                "use the default protocol"
            )
        return ids

    def tokenize_bytes(self, raw: bytes) -> TokenizedText | None:
        """Return one token per byte (Li et al. 2024, section 4.1), or None without byte tokens."""
        if self.byte_tokens is None:
            return None
        ids = self.byte_tokens[np.frombuffer(raw, dtype=np.uint8)]
        return TokenizedText(
            ids, np.zeros(len(raw) + 1, dtype=np.int64), np.arange(len(raw) + 1, dtype=np.int64)
        )


def _as_tuple(token: int | None) -> tuple[int, ...]:
    return () if token is None else (token,)


def text_model_of(tokenizer: PreTrainedTokenizerFast) -> TextModel:
    """Return a Hugging Face tokenizer as a TextModel."""
    bos = tokenizer.bos_token_id
    eos = tokenizer.eos_token_id
    # The accountant disables padding, so it must come first.
    accountant = Accountant(tokenizer.backend_tokenizer, tokenizer.all_special_tokens)
    with explained():
        encoded = tokenizer.backend_tokenizer.encode(tokenizer.bos_token or "").ids
        newline = tokenizer.backend_tokenizer.encode("\n").ids
    return TextModel(
        tokenizer=accountant,
        accountant=accountant,
        vocabulary_size=len(tokenizer),
        start_token=eos if bos is None else bos,
        bos_token=bos,
        eos_token=eos,
        newline_token=next(iter(newline), None),
        encoded_bos=() if tokenizer.bos_token is None else tuple(encoded),
        start_text=tokenizer.eos_token if bos is None else tokenizer.bos_token,
        byte_tokens=_byte_tokens(tokenizer.get_vocab()),
        chat_prefix=(lambda: _chat_prefix(tokenizer)) if tokenizer.chat_template else None,
        chat_text=(lambda text: _chat_text(tokenizer, text)) if tokenizer.chat_template else None,
    )


def control_texts_of(tokenizer: PreTrainedTokenizerFast) -> frozenset[str]:
    """Return the spellings of a tokenizer's control tokens."""
    return frozenset(control_ids(tokenizer.backend_tokenizer, tokenizer.all_special_tokens))


def _byte_tokens(vocabulary: dict[str, int]) -> Tokens | None:
    """Return the ids of the tokens <0x00> to <0xFF>, or None if one is missing."""
    # As in Li et al. 2024, only tokens reserved for bytes are used. The one-byte tokens of
    # byte-level BPE are not suitable, because they stand for pieces of text.
    ids = [vocabulary.get(f"<0x{byte:02X}>") for byte in range(256)]
    if None in ids:
        return None
    return np.array(ids, dtype=np.int64)


def _chat_prefix(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """Return the ids of the chat template filled with an empty question."""
    ids = _fill_template(tokenizer, "", tokenize=True)
    if not ids:
        raise NotMeasurable("the chat template makes nothing of an empty question")
    return tuple(ids)


def _chat_text(tokenizer: PreTrainedTokenizerFast, question: str) -> str:
    """Put a question into the chat template; raise NotMeasurable if it is not shown there."""
    failure: NotMeasurable | None = None
    parts = [{"type": "text", "text": question}]
    for content in (question, parts):
        try:
            text = str(_fill_template(tokenizer, content, tokenize=False))
        except NotMeasurable as error:
            failure = failure or error
            continue
        # A template for parts loops over the letters of a string and shows none of them. A template
        # for strings shows the Python repr of a list.
        if question.strip() in text and str(parts) not in text:
            return text
    raise failure or NotMeasurable(
        "the chat template does not show the question; use a protocol without chat, such as the "
        "default one"
    )


def _fill_template(
    tokenizer: PreTrainedTokenizerFast, content: str | list[dict[str, str]], tokenize: bool
) -> Any:
    """Fill the chat template with a user's message; NotMeasurable if the template fails."""
    messages: list[Any] = [{"role": "user", "content": content}]
    try:
        return tokenizer.apply_chat_template(
            messages,
            chat_template=_ALWAYS_THAT_DAY + tokenizer.get_chat_template(),
            add_generation_prompt=True,
            tokenize=tokenize,
            return_dict=False,
        )
    except (jinja2.TemplateError, *MODEL_FAILURES) as error:
        what = "a question" if content else "an empty question"
        raise NotMeasurable(
            f"the chat template does not take {what}: {first_line(error)}; use a protocol "
            "without chat, such as the default one"
        ) from error
