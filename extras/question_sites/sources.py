"""The sources of questions of this extra."""

QUESTIONS = (
    "extras.question_sites.kalshi",
    "extras.question_sites.metaculus",
    "extras.question_sites.polymarket",
)
