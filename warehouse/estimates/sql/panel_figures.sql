-- The figures of language models and compressors of text on common documents (panel_cells), or as
-- if on them (shared_figures); else NULL.
select
    c.model,
    c.source,
    c.protocol,
    c.month,
    c.is_text,
    is_compressor(c.model) as is_compressor,
    c.cutoff,
    c.role,
    c.standard_error,
    case when c.is_common then c.bits_per_byte else s.bits_per_byte end as bits_per_byte,
    case when c.is_common then c.num_documents else s.num_documents end as num_documents
from panel_cells as c
left join internal.shared_figures as s
    on
        c.model = s.model
        and c.source = s.source
        and c.protocol = s.protocol
        and c.month = s.month
where c.model not in ('control:png', 'control:flac', 'png', 'flac')
order by c.protocol, c.source, c.model, c.month;
