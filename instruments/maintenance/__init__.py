"""Work on a data root beside measuring: rebuilding, reproducing and taking down."""
