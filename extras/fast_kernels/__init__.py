"""Fused and captured kernels on a GPU, for ``TIDEMARK_KERNELS=fast``."""
