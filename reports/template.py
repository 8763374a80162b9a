"""Pages from their templates; whatever comes from outside is escaped."""

from __future__ import annotations

import jinja2


def render_template(name: str, **fields: object) -> str:
    """Return a page as HTML.

    Args:
        name: of a template in this room, such as ``page.html.j2``.
        fields: that it shows, all of them: one that it lacks is an error.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name).render(**fields)
