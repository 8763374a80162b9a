"""The source of questions of this extra."""

QUESTIONS = ("extras.browser_questions.good_judgment_open",)
