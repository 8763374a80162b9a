"""The simulated Common Crawl."""

SITES = ("extras.common_crawl.simulator.archive",)
