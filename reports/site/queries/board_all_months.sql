-- Level and rank of each model of the board over all months, those seen in training too.
-- months: name of the window of months
-- rank_set: ranks that other months, or documents, may give: low–high
-- note: why the model has no rank
-- rank_reason: why there is no rank, no level, or no interval of it
-- share_reason: why there is no share saved, or no interval of it
-- gap_reason: why there is no gap
-- ageing_reason: why there is no ageing
-- interval_basis: what intervals are over: months, or documents of these months
-- saved_share: how many fewer bits than control:zstd the model needs on the same months [share]
-- saved_share_low: lower end of its 95 % interval, over interval_basis [share]
-- saved_share_high: upper end of its 95 % interval [share]
select
    $span as months,
    case
        when model like 'control:%' then 'compressor'
        when rank is null then basis
    end as note,
    h.reason as rank_reason,
    case
        when h.saved_share_low is not null then null
        when h.model = 'control:zstd' then 'zstd itself'
        else h.reason
    end as share_reason,
    'told over all months alone' as gap_reason,
    'told over all months alone' as ageing_reason,
    h.*
from internal.headline_all_months as h
order by h.rank nulls last, h.bits_per_byte, h.model
