-- A curve that falls has no jump.
from cutoff_candidates;
