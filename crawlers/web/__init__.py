"""Network access: the fetcher, request pacing, robots.txt, the raw cache and credentials."""
