"""Common Crawl by month: pages that are drawn from its index, read by HTTP range requests."""
