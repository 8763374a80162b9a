-- Documents that are all alike: the interval over time is that of months. b has one horizon.
select
    d.model,
    round(p.decay_mean_pct, 6) as mean,
    round(p.decay_mean_pct_low, 3) as mean_low,
    round(d.decay_3_pct_high, 3) as high_3,
    round(d.decay_6_pct_low, 3) as low_6,
    round(p.p_value, 3) as p,
    p.q_value = p.p_value as is_alone,
    round(d.decay_mean_pct_low_documents, 3) as mean_low_documents,
    round(d.decay_3_pct_high_documents, 3) as high_3_documents,
    d.decay_9_pct_low
from internal.decay_figures as d
inner join decay_by_horizon as p
    on d.model = p.model and d.source = p.source and d.protocol = p.protocol and p.horizon = 3;
