-- All pairs of models that have a figure of the same source and month, of text new to both.
-- Grain: one row per model, other_model, source, protocol, month; model comes first in the
--   alphabet. For other views to read.
-- Units: difference is model less other_model, in bits per byte. sum_of_variances treats both
--   figures as independent, although they are not: it only weights months, for degrees of freedom.
--   degrees_of_freedom are for the interval: the lower value of both models, each three times that
--   of the cell if its clusters allow (ADR 0016). num_documents are those of `model`.
-- Only months after the training of both (training_ends). A model of which nothing is known leaves
--   out no month.
-- has_same_documents: both models measured the same documents, and the same bytes of each.
-- Source: docs/metrics.md (Pairs, New text).
create or replace view internal.paired_cells as
with figures as (
    select
        c.model,
        c.source,
        c.protocol,
        c.month,
        c.num_documents,
        c.num_chars > 0 as is_text,
        c.fingerprint,
        c.nll_nats / (ln(2) * c.num_bytes) as bits_per_byte,
        power(e.standard_error, 2) as variance,
        e.degrees_of_freedom
    from internal.sound_cells as c
    left join internal.pooled_errors as e
        on
            c.model = e.model
            and c.source = e.source
            and c.protocol = e.protocol
            and c.month = e.month
    left join main.training_ends as t on c.model = t.model
    where c.num_bytes > 0 and c.month > coalesce(t.last_month, date '-infinity')
)

select
    a.model,
    b.model as other_model,
    a.source,
    a.protocol,
    a.month,
    a.is_text,
    a.fingerprint = b.fingerprint as has_same_documents,
    a.num_documents,
    a.bits_per_byte - b.bits_per_byte as difference,
    a.variance + b.variance as sum_of_variances,
    case
        when a.degrees_of_freedom <= b.degrees_of_freedom then a.degrees_of_freedom
        when b.degrees_of_freedom < a.degrees_of_freedom then b.degrees_of_freedom
    end as degrees_of_freedom
from figures as a
inner join figures as b
    on
        a.source = b.source
        and a.protocol = b.protocol
        and a.month = b.month
        and a.model < b.model;
