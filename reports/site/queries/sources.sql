-- What is known of the sources.
from sources
