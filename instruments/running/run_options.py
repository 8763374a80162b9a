"""Options that may differ from run to run; all other settings are those of the worker."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from core.settings import PUZZLE_PROMPT, Settings
from models.scoring.protocols import list_protocols

ProtocolName = Annotated[
    str, Field(json_schema_extra={"enum": [each.name for each in list_protocols()]})
]
_MONTH = r"\d{4}-(0[1-9]|1[0-2])"
MonthName = Annotated[str, Field(pattern=f"^{_MONTH}$")]
PeriodName = Annotated[str, Field(pattern=rf"^({_MONTH}(a|b)?|\d{{4}}-W\d{{2}})$")]


class _Options(BaseModel):
    """Options that override the worker's settings of the same names, unless they are None."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def applied_to(self, settings: Settings) -> Settings:
        """Return the settings with the given options in place of theirs."""
        return settings.model_copy(update=self.given())

    def given(self) -> dict[str, Any]:
        """Return the options that are not None, by name."""
        return self.model_dump(exclude_none=True)


class RunOptions(_Options):
    """Options of crawling and scoring."""

    protocol: ProtocolName | None = Field(default=None, description="Protocol of scoring.")
    redact: bool | None = Field(
        default=None,
        description="Replace e-mail addresses, phone numbers and keys in crawled texts.",
    )
    monthly_bytes: dict[str, NonNegativeInt] | None = Field(
        default=None, description="Maximum bytes of text per month, by source. 0: no limit."
    )
    max_document_bytes: int | None = Field(
        default=None, gt=0, description="Longer documents are dropped and counted."
    )


class AnswerOptions(_Options):
    """Options of forecasting questions: limits of paid models."""

    max_answer_tokens: NonNegativeInt | None = Field(
        default=None, description="Maximum number of tokens of all requests to models behind APIs."
    )
    max_answer_dollars: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="Maximum cost of these requests."
    )


class PuzzleOptions(AnswerOptions):
    """Options of puzzles: limits of paid models, and the prompt."""

    puzzle_prompt: str | None = Field(
        default=None, pattern=f"^({PUZZLE_PROMPT})$", description="How puzzles are asked."
    )


class WorkOptions(RunOptions, PuzzleOptions):
    """Options of computing cells of any kind."""

    # Any protocol, such as a variant with another context, which the setting of a run may name.
    protocol: str | None = Field(default=None, description="Protocol of scoring.")
