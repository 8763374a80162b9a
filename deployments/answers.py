"""Health check for images without curl: exit with code 0 if a URL returns status 2xx.

python deployments/answers.py http://127.0.0.1:8080/live
"""

from __future__ import annotations

import sys
import urllib.request

TIMEOUT_S = 8


def answers(url: str) -> str | None:
    """Request a URL; return None if the status is 2xx, else a message with the error."""
    # Health checks request local URLs, so ignore the proxy settings of the environment.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=TIMEOUT_S):
            return None
    except OSError as error:
        return f"{url}: {error}"


if __name__ == "__main__":
    sys.exit(answers(sys.argv[1]))
