"""The sources of this extra, which default runs crawl."""

OPEN = (
    "extras.github.github_new",
    "extras.github.github_projects",
    "extras.github.github_trending",
)
