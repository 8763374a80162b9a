select
    * replace (
        round(bits_per_byte_low, 6) as bits_per_byte_low,
        round(bits_per_byte_high, 6) as bits_per_byte_high
    )
from internal.headline_intervals_at(null, null, 'new')
