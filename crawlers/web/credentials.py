"""Tokens of sites: sent only to their own site, and hidden everywhere else.

Responses are stored in files and quoted in messages, so tokens are removed from responses. Tokens
are also removed from errors, and from the HTTP library's log messages.
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
MIN_CHARS = 8  # hiding a shorter value would damage ordinary text
_LOGS_OF_ADDRESSES = ("urllib3.connection", "urllib3.connectionpool", "urllib3.util.retry")


class Tokens:
    """The tokens of a fetcher by site key; raises UsageError if ``learn`` rejects a token."""

    def __init__(self, by_site: Mapping[str, SecretStr]) -> None:
        self._by_site = dict(by_site)
        self._spellings: list[str] = []  # of all tokens, longest first
        self._text: re.Pattern[str] | None = None  # of any spelling
        self._packed: list[bytes] = []  # the spellings in each encoding
        for key, token in self._by_site.items():
            self.learn(token, f"the token of {key} (TIDEMARK_TOKENS__{key.upper()})")

    def of(self, key: str) -> SecretStr | None:
        """Return a site's token, or None."""
        return self._by_site.get(key)

    def learn(self, token: SecretStr, what: str) -> str:
        """Hide a secret value from now on, and return it as plain text.

        Raise UsageError for a value shorter than MIN_CHARS, or not printable ASCII without spaces.
        """
        value = token.get_secret_value()
        if len(value) < MIN_CHARS or not (value.isascii() and value.isprintable()) or " " in value:
            raise UsageError(
                f"{what} is not a valid secret; expected at least {MIN_CHARS} printable ASCII "
                "characters without spaces"
            )
        if value not in self._spellings:
            # The longest spelling comes first, since one spelling may begin with another.
            every = {value, *self._spellings, *_spellings(value)}
            self._spellings = sorted(every, key=len, reverse=True)
            self._text = re.compile("|".join(map(re.escape, self._spellings)), re.IGNORECASE)
            # Search bodies in three letter cases, as a case-insensitive search takes seconds.
            cased = {form for text in self._spellings for form in (text.lower(), text.upper())}
            forms = [*self._spellings, *sorted(cased - set(self._spellings))]
            self._packed = [text.encode(code) for text in forms for code in _CODES]
            _watched.add(self)
            for name in _LOGS_OF_ADDRESSES:
                logging.getLogger(name).addFilter(_log_filter)  # no effect if already added
        return value

    def hide(self, text: str) -> str:
        """Return a text with all tokens removed."""
        return self._text.sub(HIDDEN, text) if self._text else text

    def hide_in(self, body: bytes) -> bytes:
        """Return bytes with all tokens removed; bytes without tokens are returned unchanged."""
        for spelling in self._packed:
            body = body.replace(spelling, HIDDEN.encode())
        return body

    def hidden(self, error: TidemarkError) -> TidemarkError | None:
        """Return a copy of an error without tokens, or None if the error contains no token."""
        # The copy has no cause, since a traceback would show the cause, too.
        texts = [f"{each} {each.args!r}" for each in _chain(error)]
        if all(self.hide(text) == text for text in texts):
            return None
        return type(error)(*(self.hide(str(argument)) for argument in error.args))


_CODES = ("utf-8", "utf-16-le", "utf-16-be")


def _spellings(value: str) -> set[str]:
    """Return the encoded forms of a value that a response may contain: in URL, JSON or HTML."""
    quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
    lower = {re.sub("%..", lambda code: code[0].lower(), text) for text in quoted}
    return {*quoted, *lower, json.dumps(value)[1:-1], html.escape(value)}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        yield from _chain(error.__cause__)
        yield from _chain(error.__context__)


def hide_known(text: str) -> str:
    """Return a text without any token that this process has learnt so far."""
    for tokens in list(_watched):
        text = tokens.hide(text)
    return text


class _HideTokens(logging.Filter):
    """Removes known tokens from log messages, also from their arguments and tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        shown = hide_known(text)
        if shown != text:
            record.msg = shown
            record.args = ()
            record.exc_info = None
        return True


_watched: weakref.WeakSet[Tokens] = weakref.WeakSet()
_log_filter = _HideTokens()
