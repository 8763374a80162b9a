"""The pages of the site, one module per kind of page."""
