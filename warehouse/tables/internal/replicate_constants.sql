-- Constants of the hash that gives a cluster's weight in each bootstrap replicate.
-- Grain: one row per replicate (1 to 200).
-- A cluster with seed s gets u = (multiplier * s + increment) mod (2^31 - 1). Only MD5 and integers
-- are used, so that every version of every client gives the same weights.
create table if not exists internal.replicate_constants as
select
    cast(r.number as smallint) as replicate,
    cast('0x' || substr(md5('multiplier ' || r.number), 1, 7) as bigint) + 1 as multiplier,
    cast('0x' || substr(md5('increment ' || r.number), 1, 7) as bigint) as increment
from range(1, 201) as r (number);
