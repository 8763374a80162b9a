"""Reports: HTML pages, charts and exports of the warehouse's figures; they compute no figures."""
