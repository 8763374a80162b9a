"""What answers forecasting questions: the one interface of local, remote and API models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from core.answers import Answer, NoAnswer
from core.questions import Question
from models.answer_protocols import AnswerProtocol


class Answerer(Protocol):
    """A model that can be asked questions."""

    @property
    def name(self) -> str:
        """The ``model`` column."""

    @property
    def revision(self) -> str:
        """Of its weights and tokenizer; of an API model, what its server calls it."""

    def answering_id(self, protocol: AnswerProtocol) -> str:
        """Return a short hash over the protocol, its prompt, numerics and the code's version.

        Raises:
            NotMeasurable: the model cannot be asked under this protocol.
        """

    def answer(
        self, questions: Sequence[Question], protocol: AnswerProtocol
    ) -> Iterator[Answer | NoAnswer]:
        """Yield one answer to each question, in their order, as they come.

        A question that cannot be asked or answered has an answer with a ``reason``; none is left
        out. One on which a server fails, though it answers others, has a
        ``NoAnswer``. The answer to a question does not depend on which others are asked with it.

        Raises:
            NotMeasurable: the model cannot be asked under this protocol, or a single question does
                not fit into the device's memory.
            ModelError: a server cannot be reached, or fails.
        """
