"""Tokens: sent to the site that they are for, and seen nowhere else.

Nothing that a site answers may hold one, as it goes into files and messages; neither may an error,
nor what the HTTP library logs of an address.
"""

from __future__ import annotations

import html
import json
import logging
import re
import weakref
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from core.errors import TidemarkError, UsageError

HIDDEN = "[token]"
MIN_CHARS = 8  # to hide a shorter one would spoil what is no token
_LOGS_OF_ADDRESSES = ("urllib3.connection", "urllib3.connectionpool", "urllib3.util.retry")


class Tokens:
    """The tokens that a fetcher may send.

    Args:
        by_site: the ``tokens`` setting.

    Raises:
        UsageError: one is no token; see ``learn``.
    """

    def __init__(self, by_site: Mapping[str, SecretStr]) -> None:
        self._by_site = dict(by_site)
        self._spellings: list[str] = []
        self._text: re.Pattern[str] | None = None
        self._packed: list[bytes] = []
        for key, token in self._by_site.items():
            self.learn(token, f"the token of {key} (TIDEMARK_TOKENS__{key.upper()})")

    def of(self, key: str) -> SecretStr | None:
        """Return a site's token, or None where there is none."""
        return self._by_site.get(key)

    def learn(self, token: SecretStr, what: str) -> str:
        """Hide a value from now on, and return it in the clear.

        Raises:
            UsageError: it is too short to be one, or has characters that HTTP does not allow.
        """
        value = token.get_secret_value()
        if len(value) < MIN_CHARS or not (value.isascii() and value.isprintable()) or " " in value:
            raise UsageError(
                f"{what} is none; expected at least {MIN_CHARS} printable ASCII characters "
                "without spaces"
            )
        if value not in self._spellings:
            # The longest first: one spelling may begin with another.
            every = {value, *self._spellings, *_spellings(value)}
            self._spellings = sorted(every, key=len, reverse=True)
            self._text = re.compile("|".join(map(re.escape, self._spellings)), re.IGNORECASE)
            # A body may be large, and there a search without regard to case takes seconds.
            cased = {form for text in self._spellings for form in (text.lower(), text.upper())}
            forms = [*self._spellings, *sorted(cased - set(self._spellings))]
            self._packed = [text.encode(code) for text in forms for code in _CODES]
            _watched.add(self)
            for name in _LOGS_OF_ADDRESSES:
                logging.getLogger(name).addFilter(_log_filter)  # once, however often it is called
        return value

    def hide(self, text: str) -> str:
        """Return a text without tokens."""
        return self._text.sub(HIDDEN, text) if self._text else text

    def hide_in(self, body: bytes) -> bytes:
        """Return bytes without tokens; bytes that hold none come back as they are."""
        for spelling in self._packed:
            body = body.replace(spelling, HIDDEN.encode())
        return body

    def hidden(self, error: TidemarkError) -> TidemarkError | None:
        """Return the error to raise in place of one that shows a token, or None where none does.

        What it was raised from is left out, since a traceback shows that, too.
        """
        texts = [f"{each} {each.args!r}" for each in _chain(error)]
        if all(self.hide(text) == text for text in texts):
            return None
        return type(error)(*(self.hide(str(argument)) for argument in error.args))


_CODES = ("utf-8", "utf-16-le", "utf-16-be")


def _spellings(value: str) -> set[str]:
    """The ways in which a site may repeat a value: in an address, in JSON, in HTML."""
    quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
    lower = {re.sub("%..", lambda code: code[0].lower(), text) for text in quoted}
    return {*quoted, *lower, json.dumps(value)[1:-1], html.escape(value)}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        yield from _chain(error.__cause__)
        yield from _chain(error.__context__)


def hide_known(text: str) -> str:
    """Return a text without the tokens that this process has been given so far."""
    for tokens in list(_watched):
        text = tokens.hide(text)
    return text


class _HideTokens(logging.Filter):
    """Hides tokens in what the HTTP library logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        shown = hide_known(text)
        if shown != text:
            record.msg, record.args, record.exc_info = shown, (), None
        return True


_watched: weakref.WeakSet[Tokens] = weakref.WeakSet()
_log_filter = _HideTokens()
