"""The files of a model: the hub, the local cache, checkpoints, adapters, placement on devices."""
