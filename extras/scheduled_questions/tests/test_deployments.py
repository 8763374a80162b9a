"""The deployments `forecast` and `scylla`."""

import pytest

from deployments.prefect_yaml import Deployment, is_ours, read_deployments

DEPLOYMENTS = {each.name: each for each in read_deployments()}


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["forecast", "scylla"])
def test_they_are_made_with_those_of_the_kernel(name: str) -> None:
    deployment = DEPLOYMENTS[name]
    kernels = DEPLOYMENTS["monthly"]
    assert is_ours(deployment.full_name, deployment.entrypoint, deployment.parameters)
    assert deployment.work_pool == kernels.work_pool, "pool and heartbeats are the same"
    assert deployment.pull_steps == kernels.pull_steps
    assert deployment.schedules


@pytest.mark.parametrize(
    "given", [{"first": "2024-01a"}, {"protocol": "nope"}, {"options": {"max_answer_dollars": -1}}]
)
def test_the_form_refuses_what_is_no_month_protocol_or_limit(given: dict[str, object]) -> None:
    deployment: Deployment = DEPLOYMENTS["forecast"]
    # It imports SQLAlchemy, which takes half a second, and each process imports this module.
    from prefect.utilities.schema_tools.validation import ValidationError, validate

    with pytest.raises(ValidationError):
        validate(given, deployment.fields()["parameter_openapi_schema"], raise_on_error=True)
