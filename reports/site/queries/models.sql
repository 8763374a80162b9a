-- What is known of the landed models.
from models
