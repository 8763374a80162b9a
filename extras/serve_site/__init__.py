"""An HTTP server of the site and the published snapshot."""
