"""The source of this extra."""

OPEN = ("extras.arxiv.arxiv",)
