"""The sources of this extra, which default runs crawl."""

OPEN = (
    "extras.more_sources.biorxiv",
    "extras.more_sources.edgar",
    "extras.more_sources.federal_register",
    "extras.more_sources.scp_tales",
    "extras.more_sources.stackexchange",
)
STAND_INS = {
    "edgar": "yahoo_finance",
    "scp_tales": "ao3, wattpad",
    "stackexchange": "quora, reddit",
}
