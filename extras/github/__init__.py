"""Code and READMEs of repositories on GitHub."""
