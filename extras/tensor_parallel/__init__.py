"""Tensor parallelism: several devices share each layer of a model."""
