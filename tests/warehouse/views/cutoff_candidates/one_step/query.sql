-- A curve that falls has no jump.
from internal.cutoff_candidates;
