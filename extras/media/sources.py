"""The sources of this extra."""

OPEN = ("extras.media.commons_audio", "extras.media.commons_images")
