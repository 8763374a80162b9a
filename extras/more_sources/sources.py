"""The sources of this extra, which default runs crawl."""

OPEN = (
    "extras.more_sources.biorxiv",
    "extras.more_sources.edgar",
    "extras.more_sources.federal_register",
    "extras.more_sources.global_voices",
    "extras.more_sources.govuk",
    "extras.more_sources.scp_tales",
    "extras.more_sources.stackexchange",
    "extras.more_sources.wikinews",
    "extras.more_sources.wikipedia_changes",
    "extras.more_sources.wikipedia_monitored",
)
STAND_INS = {
    "edgar": "yahoo_finance",
    "global_voices": "bbc",
    "govuk": "bbc",
    "scp_tales": "ao3, wattpad",
    "stackexchange": "quora, reddit",
    "wikinews": "bbc",
}
