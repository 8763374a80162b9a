"""The source of this extra."""

OPEN = ("extras.common_crawl.common_crawl",)
