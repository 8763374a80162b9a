"""RWKV checkpoints (``.pth``), run by the package rwkv."""
