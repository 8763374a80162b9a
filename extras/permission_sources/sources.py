"""The sources of this extra, which need a permission."""

GATED = (
    "extras.permission_sources.ao3",
    "extras.permission_sources.bbc",
    "extras.permission_sources.quora",
    "extras.permission_sources.reddit",
    "extras.permission_sources.wattpad",
    "extras.permission_sources.yahoo_finance",
)
