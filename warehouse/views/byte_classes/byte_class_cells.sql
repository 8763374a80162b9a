-- Losses of each month by class of byte, with rows of 0 for classes that a month lacks. For other
--   views to read.
-- Grain: one row per model, source, protocol, month, byte_class; every class of the model under the
--   protocol. Undated text, half-months, weeks, and cells with a loss that is not finite are left
--   out.
-- Units: bits_of_text is the loss of the class per byte of the whole text, in bits per byte. Over
--   the classes of a month, bits_of_text sums up to the month's figure, and share_of_bytes to 1.
-- Source: docs/metrics.md (Losses by class of byte).
create or replace view internal.byte_class_cells as
with sound as (
    select b.*
    from main.byte_class_losses as b
    semi join internal.monthly_loss_details as l
        on
            b.model = l.model
            and b.source = l.source
            and b.protocol = l.protocol
            and b.month = l.month
            and l.bits_per_byte is not null
),

texts as (
    select
        model,
        source,
        protocol,
        month,
        sum(num_bytes) as num_bytes
    from sound
    group by model, source, protocol, month
    having sum(num_bytes) > 0
),

classes as (
    select distinct
        model,
        protocol,
        byte_class
    from sound
)

select
    t.model,
    t.source,
    t.protocol,
    t.month,
    c.byte_class,
    coalesce(s.nll_nats, 0) as nll_nats,
    coalesce(s.num_bytes, 0) as num_bytes,
    coalesce(s.nll_nats, 0) / (ln(2) * t.num_bytes) as bits_of_text,
    coalesce(s.num_bytes, 0) / t.num_bytes as share_of_bytes
from texts as t
inner join classes as c on t.model = c.model and t.protocol = c.protocol
left join sound as s
    on
        t.model = s.model
        and t.source = s.source
        and t.protocol = s.protocol
        and t.month = s.month
        and c.byte_class = s.byte_class;
