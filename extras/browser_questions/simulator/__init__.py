"""The simulated Good Judgment Open."""

SITES = ("extras.browser_questions.simulator.gjo",)
