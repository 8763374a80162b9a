"""Checkpoints from before transformers took over their code: mamba_ssm, Falcon of 2023, Yi."""
