"""The automations that send alarms, and the secret block with the address of their webhook."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.events.schemas.automations import AutomationCore
from prefect.types import SecretDict
from pydantic import SecretStr

from deployments.automations import fill_in
from deployments.deploy import NO_ID, Change, Deployer, find

ALARMS_YAML = Path(__file__).with_name("alarms.yaml")
BLOCK = "tidemark-alerts"
BLOCK_TYPE = "custom-webhook"


def make_alarms(
    work: Deployer, notify_url: SecretStr | None, keep_alarms: bool, monthly: UUID
) -> list[AutomationCore]:
    """Create, keep or remove the block of the webhook; return the automations that use it.

    Args:
        work: makes the changes.
        notify_url: URL of the webhook. With None, a block that exists is kept.
        keep_alarms: False to remove the block if ``notify_url`` is None.
        monthly: id of the deployment whose late runs are told of.
    """
    block = _make_block(work, notify_url) if notify_url else _keep_block(work, keep_alarms)
    if block is None:
        return []
    return fill_in(ALARMS_YAML, monthly=monthly, block=block)


def _make_block(work: Deployer, notify_url: SecretStr) -> UUID:
    """Make or change the Prefect block that sends alarms to an address; return its id."""
    what = f"block {BLOCK}"
    kind = CustomWebhookNotificationBlock
    new = kind(
        name=BLOCK,
        url="{{ address }}",
        # Slack, Mattermost and Google Chat accept the field "text"; some refuse other fields.
        json_data={"text": "{{ subject }}\n{{ body }}"},
        secrets=SecretDict({"address": notify_url.get_secret_value()}),
        headers=None,
        cookies=None,
    )
    document = find(work.client.read_block_document_by_name, BLOCK, BLOCK_TYPE)
    if document is None:
        made: UUID | None = work.do(Change("made", what), new.save, BLOCK)
        return made or NO_ID
    old = kind.model_validate(document.data)
    if all(getattr(old, name) == getattr(new, name) for name in kind.model_fields):
        work.keep(what)
    else:
        work.do(Change("changed", what), partial(new.save, BLOCK, overwrite=True))
    return document.id


def _keep_block(work: Deployer, is_kept: bool) -> UUID | None:
    """Keep or remove the block, if there is one; return the id of a kept one."""
    document = find(work.client.read_block_document_by_name, BLOCK, BLOCK_TYPE)
    if document is None:
        return None
    if is_kept:
        work.keep(f"block {BLOCK}", "TIDEMARK_NOTIFY_URL is not set")
        return document.id
    change = Change("removed", f"block {BLOCK}")
    work.do(change, work.client.delete_block_document, document.id)
    return None
