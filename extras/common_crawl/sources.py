"""The source of this extra, which default runs leave out: it lists a month weeks later."""

ON_DEMAND = ("extras.common_crawl.common_crawl",)
