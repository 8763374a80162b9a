"""Reports: HTML pages, charts and exports of figures, which the warehouse's views compute."""
