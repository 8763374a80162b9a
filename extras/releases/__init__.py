"""Releases: frozen snapshots that can be cited and verified."""
