"""What a model's tokenizer means for scoring: tokens of a text, and tokens put before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jinja2
import numpy as np
from transformers import PreTrainedTokenizerFast

from core.cell_record import TokenizerFacts
from core.errors import NotMeasurable
from models.accounting import Accountant, TokenizedText
from models.backend import Tokens
from models.failures import MODEL_FAILURES, first_line
from models.protocols import ScoringProtocol

# Some templates state the day; losses must not depend on it. The day is the one that Llama's
# templates fall back on where no clock is given.
_ALWAYS_THAT_DAY = "{%- macro strftime_now(format) -%}26 Jul 2024{%- endmacro -%}"


class Tokenizer(Protocol):
    """Cuts texts into tokens and accounts for what each covers."""

    def tokenize(self, texts: Sequence[str], special_tokens: bool = False) -> list[TokenizedText]:
        """Tokenize texts; ``special_tokens``: with those that the tokenizer adds by itself."""


@dataclass(frozen=True)
class TextModel:
    """A tokenizer, and the tokens with a meaning of their own.

    Attributes:
        tokenizer: of texts.
        vocabulary_size: tokens that it has; what a token with nothing before it costs ln of.
        start_token: id of BOS, else of EOS, else None.
        bos_token: id of BOS.
        encoded_bos: what the tokenizer makes of BOS as a text, its own special tokens included.
        start_text: the start token, for people.
        byte_tokens: ids of the tokens that stand for the bytes 0 to 255, (256,); None where the
            vocabulary has none.
        chat_prefix: gives the ids before an answer to an empty question; None without a template.
        chat_text: puts a question into the template, up to where the answer begins; likewise.
    """

    tokenizer: Tokenizer
    vocabulary_size: int
    start_token: int | None
    bos_token: int | None = None
    encoded_bos: tuple[int, ...] = ()
    start_text: str | None = None
    byte_tokens: Tokens | None = field(default=None, compare=False)
    chat_prefix: Callable[[], tuple[int, ...]] | None = None
    chat_text: Callable[[str], str] | None = None

    @property
    def facts(self) -> TokenizerFacts:
        """What is kept of it beside the losses."""
        return TokenizerFacts(
            vocabulary_size=self.vocabulary_size,
            start_token=self.start_text,
            has_byte_tokens=self.byte_tokens is not None,
        )

    def prefix(self, protocol: ScoringProtocol) -> tuple[int, ...]:
        """Return the ids before each window's text; none where start token or BOS are lacking.

        Raises:
            NotMeasurable: the protocol cannot do without.
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
            "start": _just(self.start_token),
            "bos": _just(self.bos_token),
            "encoded-bos": self.encoded_bos,
        }[protocol.prefix]
        if not ids and (protocol.layout == "rolling" or protocol.prefix == "encoded-bos"):
            raise NotMeasurable(
                f"protocol {protocol.name} needs a start token and the tokenizer has none; "
                "use the default protocol"
            )
        return ids

    def tokenize_bytes(self, raw: bytes) -> TokenizedText | None:
        """Return one token a byte (Li et al. 2024, section 4.1); None without byte tokens."""
        if self.byte_tokens is None:
            return None
        ids = self.byte_tokens[np.frombuffer(raw, dtype=np.uint8)]
        return TokenizedText(
            ids, np.zeros(len(raw) + 1, dtype=np.int64), np.arange(len(raw) + 1, dtype=np.int64)
        )


def _just(token: int | None) -> tuple[int, ...]:
    return () if token is None else (token,)


def text_model_of(tokenizer: PreTrainedTokenizerFast) -> TextModel:
    """Read off a Hugging Face tokenizer what scoring needs."""
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    accountant = Accountant(tokenizer.backend_tokenizer)  # first: it switches padding off
    encoded: tuple[int, ...] = ()
    if tokenizer.bos_token is not None:
        encoded = tuple(tokenizer.backend_tokenizer.encode(tokenizer.bos_token).ids)
    return TextModel(
        tokenizer=accountant,
        vocabulary_size=len(tokenizer),
        start_token=eos if bos is None else bos,
        bos_token=bos,
        encoded_bos=encoded,
        start_text=tokenizer.eos_token if bos is None else tokenizer.bos_token,
        byte_tokens=_byte_tokens(tokenizer.get_vocab()),
        chat_prefix=(lambda: _chat_prefix(tokenizer)) if tokenizer.chat_template else None,
        chat_text=(lambda text: _chat_text(tokenizer, text)) if tokenizer.chat_template else None,
    )


def _byte_tokens(vocabulary: dict[str, int]) -> Tokens | None:
    """The ids of <0x00> to <0xFF>.

    Only tokens that are reserved for bytes count, as in the paper: the letters of a byte-level BPE
    are pieces of text, and what such a model expects after one is text.
    """
    ids = [vocabulary.get(f"<0x{byte:02X}>") for byte in range(256)]
    if None in ids:
        return None
    return np.array(ids, dtype=np.int64)


def _chat_prefix(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    ids = _fill_template(tokenizer, "", tokenize=True)
    if not ids:
        raise NotMeasurable("the chat template makes nothing of an empty question")
    return tuple(ids)


def _chat_text(tokenizer: PreTrainedTokenizerFast, question: str) -> str:
    """Put a question into the template: as a string or, where that is not shown, as a part.

    Raises:
        NotMeasurable: the template shows the question in neither form.
    """
    failure: NotMeasurable | None = None
    parts = [{"type": "text", "text": question}]
    for content in (question, parts):
        try:
            text = str(_fill_template(tokenizer, content, tokenize=False))
        except NotMeasurable as error:
            failure = failure or error
            continue
        # Templates that want parts loop over the letters of a string, and show none of them; those
        # that want a string show of parts how Python writes them.
        if question.strip() in text and str(parts) not in text:
            return text
    raise failure or NotMeasurable(
        "the chat template does not show the question; use a protocol without chat, such as the "
        "default one"
    )


def _fill_template(
    tokenizer: PreTrainedTokenizerFast, content: str | list[dict[str, str]], tokenize: bool
) -> Any:
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
