"""What a model is to the scorer: it says how surprised it is by tokens that follow others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]


class DeviceFull(Exception):
    """A batch does not fit into the device's memory; smaller ones may."""


class Backend(Protocol):
    """Runs a causal model, wherever it is."""

    @property
    def max_batch_tokens(self) -> int | None:
        """Inputs that one batch may have, padding included; None: any number."""

    def losses(
        self,
        inputs: Sequence[Tokens],
        targets: Sequence[Tokens],
        alphabet: Tokens | None = None,
    ) -> list[Losses]:
        """Return -ln p of each row's targets.

        Rows do not see each other: a row's losses do not depend on what shares its batch.

        Args:
            inputs: token ids of each row, (length,).
            targets: what follows the row's last positions, (scored,), scored <= length.
            alphabet: ids among which alone the targets are chosen: the softmax is over these.

        Returns:
            Nats of each row, (scored,), summed up by nobody yet.

        Raises:
            DeviceFull: the batch is too large for the device.
        """
