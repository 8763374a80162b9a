"""How flows end: a message that names the holes, however many there are."""

from __future__ import annotations

from prefect.client.schemas.objects import State

from flows.stages import PARTIAL, ended
from tasks.fan_out import Hole


def test_an_outcome_without_holes_is_returned_as_it_is() -> None:
    assert ended(3, []) == 3


def test_a_message_lists_fifty_holes_and_counts_the_others() -> None:
    state: object = ended(3, [Hole(f"crawl {number}", "gone") for number in range(53)])
    assert isinstance(state, State)
    assert (state.name, state.data) == (PARTIAL, 3)
    first, *holes, last = (state.message or "").splitlines()
    assert (first, len(holes), last) == ("53 holes:", 50, "and 3 more")
    assert holes[0] == "crawl 0: gone"
