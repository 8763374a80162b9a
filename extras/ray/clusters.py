"""The cluster that flow runs of workers use if TIDEMARK_RAY_ADDRESS is set."""

from __future__ import annotations

from core.errors import OrchestrationError
from core.month import Period
from core.settings import Settings
from core.version import how_to_install
from instruments.driver import Summary, WorkRequest


def work_on_cluster(
    request: WorkRequest,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
) -> Summary:
    """Score on the cluster; see ``work_on_ray``.

    Raises:
        OrchestrationError: the packages of Ray are not installed.
    """
    try:
        from extras.ray.scoring import work_on_ray  # requires the packages of the extra
    except ImportError as error:
        raise OrchestrationError(
            f"TIDEMARK_RAY_ADDRESS is {settings.ray_address}, but Ray is not installed here "
            f"({error}): {how_to_install('ray')}, or unset it to score in this process"
        ) from error
    return work_on_ray(request, sources, months, settings)
