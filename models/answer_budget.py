"""What answers cost, and the limit of a run: nothing is sent that could exceed it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from core.errors import BudgetReached, UsageError
from core.settings import Settings
from models.catalogue import ModelEntry

_ROUNDING = 1e-9  # dollars


@dataclass(frozen=True)
class Cost:
    """Tokens, and their price; ``dollars`` is None where the entry has no prices."""

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Of both kinds."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Cost) -> Cost:
        is_priced = self.dollars is not None and other.dollars is not None
        return Cost(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.dollars or 0.0) + (other.dollars or 0.0) if is_priced else None,
        )

    def __str__(self) -> str:
        money = "" if self.dollars is None else f", {self.dollars:.6f} dollars"
        return f"{self.tokens} tokens ({self.input_tokens} in, {self.output_tokens} out){money}"


def cost_of(entry: ModelEntry, input_tokens: int, output_tokens: int) -> Cost:
    """Return what an entry's API takes for so many tokens."""
    price_in = entry.dollars_per_million_input_tokens
    price_out = entry.dollars_per_million_output_tokens
    if price_in is None or price_out is None:
        return Cost(input_tokens, output_tokens, None)
    dollars = (input_tokens * price_in + output_tokens * price_out) / 1e6
    return Cost(input_tokens, output_tokens, dollars)


class Budget:
    """The limit of one run, of all its models and threads together.

    Args:
        max_tokens: input and output together; None: no limit.
        max_dollars: by the prices in the entries; None: no limit.
    """

    def __init__(self, max_tokens: int | None = None, max_dollars: float | None = None) -> None:
        self.max_tokens, self.max_dollars = max_tokens, max_dollars
        self._spent = Cost()
        self._in_flight: list[Cost] = []
        self._changed = threading.Condition()

    @classmethod
    def of(cls, settings: Settings) -> Budget:
        """Return the budget that the settings give a run."""
        return cls(settings.max_answer_tokens, settings.max_answer_dollars)

    @property
    def spent(self) -> Cost:
        """In this run so far; what was lost on its way is in it by its estimate."""
        return self._spent

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self.max_tokens is not None or self.max_dollars is not None

    def check(self, entry: ModelEntry) -> None:
        """Refuse a limit that cannot be kept.

        Raises:
            UsageError: there is a limit of money, and the entry has no prices.
        """
        if self.max_dollars is not None and entry.dollars_per_million_input_tokens is None:
            raise UsageError(
                f"{entry.name}: the run may spend {self.max_dollars} dollars, but the entry has no "
                "prices; add dollars_per_million_input_tokens and …_output_tokens to it, or limit "
                "tokens instead (TIDEMARK_MAX_ANSWER_TOKENS)"
            )

    def reserve(self, most: Cost) -> None:
        """Set aside what a request may cost at most; wait for those in flight where it is short.

        Raises:
            BudgetReached: it may cost more than is left, and nothing is in flight.
        """
        with self._changed:
            while not self._fits(most):
                if not self._in_flight:
                    raise BudgetReached(f"a request may take {most}; {self}")
                self._changed.wait()
            self._in_flight.append(most)

    def settle(self, most: Cost, paid: Cost) -> None:
        """Replace what was set aside by what it cost."""
        with self._changed:
            self._in_flight.remove(most)
            self._spent += paid
            self._changed.notify_all()

    def _fits(self, most: Cost) -> bool:
        total = sum(self._in_flight, self._spent + most)
        if self.max_tokens is not None and total.tokens > self.max_tokens:
            return False
        dollars = total.dollars or 0.0
        return self.max_dollars is None or dollars <= self.max_dollars + _ROUNDING

    def __str__(self) -> str:
        left = []
        if self.max_tokens is not None:
            tokens = max(0, self.max_tokens - self._spent.tokens)
            left.append(f"{tokens} of {self.max_tokens} tokens")
        if self.max_dollars is not None:
            dollars = max(0.0, self.max_dollars - (self._spent.dollars or 0.0))
            left.append(f"{dollars:.6f} of {self.max_dollars} dollars")
        rest = f"; left: {' and '.join(left)}" if left else ""
        return f"this run has spent {self._spent}{rest}"
