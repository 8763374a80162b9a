"""Consent walls, log-ins and lists that grow: what a session does on a page beside waiting.

A wall that covers the text is closed only by a button that refuses cookies, or takes the necessary
ones. Any other wall stays, and the page counts as refused. A log-in form in place of the text is
recognised and left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

from core.errors import ItemUnavailable
from extras.browser_questions.browser.fetching import Clock

_PAUSE_MS = 100.0
_MAX_LOOKS = 20  # maximum looks at a wall, ``_PAUSE_MS`` apart, until it counts as one that stays
_QUIET_S = 2.0  # a list has ended if it does not grow for this many seconds without requests
_LOGIN_LOOKS = 4  # number of looks at a log-in form, without the text, until it counts

# Whole labels of buttons. "Accept" alone is not among them, in any language.
_REFUSALS = (
    "(reject|refuse|decline|deny)( all)?( (optional|additional|non-essential))?( cookies)?"
    "|((use|accept|allow) )?(only )?(strictly )?(necessary|essential|required)( cookies)?( only)?"
    "|continue without (accepting|agreeing)|(alle )?(cookies )?ablehnen"
    "|nur (notwendige|erforderliche)( cookies)?|tout refuser|continuer sans accepter"
)
# Returns "clear", "closing" after a click on a refusal, "wall" or "login".
_LOOK = """
([ready, refusals]) => {
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const target = document.querySelector(ready);
  if (target && !shown(target)) return 'clear';
  let x = innerWidth / 2, y = innerHeight / 2;
  if (target) {
    target.scrollIntoView({block: 'center'});
    const r = target.getBoundingClientRect();
    x = Math.min(Math.max(r.left + r.width / 2, 0), innerWidth - 1);
    y = Math.min(Math.max(r.top + r.height / 2, 0), innerHeight - 1);
  }
  const top = document.elementFromPoint(x, y);
  const isOver = e => e.tagName === 'DIALOG' ||
    ['fixed', 'absolute', 'sticky'].includes(getComputedStyle(e).position);
  let wall = null;
  if (top && !(target && (target.contains(top) || top.contains(target))))
    for (let e = top; e && e !== document.body; e = e.parentElement)
      if (isOver(e) && !(target && e.contains(target))) wall = e;
  if (wall) {
    const pattern = new RegExp(`^(${refusals})$`, 'i');
    const label = e => (e.innerText || e.value || '').replace(/\\s+/g, ' ').trim();
    for (const e of document.querySelectorAll('button, [role=button], input[type=button], a'))
      if (shown(e) && pattern.test(label(e))) { e.click(); return 'closing'; }
    return 'wall';
  }
  const isLogin = [...document.querySelectorAll('input[type=password]')].some(shown);
  return !target && isLogin ? 'login' : 'clear';
}
"""


@dataclass(frozen=True)
class Scroll:
    """Bounds for a list that grows while it is scrolled."""

    items: str  # CSS selector of an entry
    max_items: int  # scrolling ends once the list has as many
    max_steps: int = 50


class Watch:
    """Looks at one page for what stands between the reader and the text."""

    def __init__(self, page: Page, url: str, ready: str, left_ms: Callable[[], float]) -> None:
        self._page = page
        self._url = url
        self._ready = ready
        self._left_ms = left_ms
        self._num_logins = 0
        self.num_closed = 0  # walls that were closed

    def look(self) -> bool:
        """Close a wall if it may be closed; return True if a wall is left.

        Raise ItemUnavailable (``permission``) for a log-in form that stays in place of the text.
        Raise TimeoutError of Playwright if the page does not respond.
        """
        # Unlike ``evaluate``, this call ends if a script of the page never does.
        handle = self._page.wait_for_function(
            _LOOK, arg=[self._ready, _REFUSALS], timeout=self._left_ms()
        )
        found = handle.json_value()
        self._num_logins = self._num_logins + 1 if found == "login" else 0
        if self._num_logins >= _LOGIN_LOOKS:
            raise ItemUnavailable(
                "permission",
                f"{self._url} asks for a log-in at {self._page.url}; no user name and password are "
                "typed there: the source reads public pages alone",
            )
        self.num_closed += found == "closing"
        return found in ("wall", "closing")

    def require_clear(self) -> None:
        """Return once nothing covers the text; raise ItemUnavailable if a wall stays."""
        for _ in range(_MAX_LOOKS):
            if not self.look():
                return
            self._page.wait_for_timeout(_PAUSE_MS)
        raise self.covered()

    def covered(self) -> ItemUnavailable:
        """Return the error of a page whose text is behind a wall."""
        return ItemUnavailable(
            "permission",
            f"{self._url}: a consent wall covers {self._ready}, and has no button that refuses "
            "cookies, or takes the necessary ones; it is not accepted",
        )


def scroll_list(page: Page, scroll: Scroll, clock: Clock, num_asked: Callable[[], int]) -> int:
    """Scroll to the end of a list until it stops growing or reaches a bound; return its length.

    ``num_asked`` returns the number of the page's requests so far.
    """
    num_items = page.locator(scroll.items).count()
    for _ in range(scroll.max_steps):
        if num_items >= scroll.max_items:
            break
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        began = clock.elapsed_s
        num_before = num_items
        asked = num_asked()
        while num_items == num_before and clock.elapsed_s - began < _QUIET_S:
            page.wait_for_timeout(_PAUSE_MS)
            num_items = page.locator(scroll.items).count()
            if num_asked() != asked:
                began = clock.elapsed_s
                asked = num_asked()
        if num_items == num_before:
            break
    return num_items
