-- Documents that are all alike: the interval over time is that of months. b has one horizon.
select
    model,
    round(decay_mean_pct, 6) as mean,
    round(decay_mean_pct_low, 3) as mean_low,
    round(decay_3_pct_high, 3) as high_3,
    round(decay_6_pct_low, 3) as low_6,
    round(p_value, 3) as p,
    q_value = p_value as is_alone,
    round(decay_mean_pct_low_documents, 3) as mean_low_documents,
    round(decay_3_pct_high_documents, 3) as high_3_documents,
    decay_9_pct_low
from internal.decay_after_release_details;
