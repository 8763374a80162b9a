"""The letters of a town that does not exist, as its site gives them."""

from __future__ import annotations

from core.errors import TidemarkError
from core.month import Month
from simulator.server import Request, Response, WorldSite, as_json, take_quirk
from simulator.world import Story

PAGE = 10  # letters on a page of the list


class Site(WorldSite):
    """See ``simulator.server.Site``."""

    keys: tuple[str, ...] = ("toy",)
    robots: str | None = "User-agent: *\nDisallow: /private\n"

    def respond(self, request: Request) -> Response:
        """Respond to /letters and /letter/<id>."""
        if request.path not in ("/letters",) and not request.path.startswith("/letter/"):
            return as_json({"error": "no such page"}, 404)
        if take_quirk(self, "error_as_200"):
            return as_json({"error": "busy"})
        try:
            if request.path == "/letters":
                return self._list(Month(request.arg("month")), int(request.arg("page", "1")))
            month, number = request.path.removeprefix("/letter/").rsplit("-", 1)
            return self._letter(Month(month), int(number))
        except (TidemarkError, ValueError):
            return as_json({"error": "bad parameter"}, 400)

    def _list(self, month: Month, page: int) -> Response:
        stories = self.world.stories(month, "toy")
        begin = (page - 1) * PAGE
        if begin and take_quirk(self, "moving_items"):
            begin -= 1
        rows = [_row(story, month, number) for number, story in enumerate(stories)]
        rows = rows[begin : page * PAGE]
        if take_quirk(self, "empty_page"):
            rows = []
        return self._respond({"letters": rows, "total": len(stories), "page": page})

    def _letter(self, month: Month, number: int) -> Response:
        stories = self.world.stories(month, "toy")
        if not 0 <= number < len(stories):
            return as_json({"error": "no such letter"}, 404)
        story = stories[number]
        text = "\n\n".join(story.paragraphs)
        return self._respond({"title": story.title, "text": text, "town": "Nowhere"})

    def _respond(self, content: dict[str, object]) -> Response:
        if take_quirk(self, "extra_fields"):
            content["weather"] = {"rain": True}
        if take_quirk(self, "missing_fields"):
            content.pop("town", None)
        return as_json(content)


def _row(story: Story, month: Month, number: int) -> dict[str, object]:
    posted = month.end - (month.end - month.start) / 100 * (number + 1)
    return {"id": f"{month}-{number}", "posted": posted.replace(microsecond=0).isoformat()}
