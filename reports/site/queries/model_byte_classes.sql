-- Where the gap of each model sits: one row per class of bytes, means over sources.
-- label: class of bytes
-- part_of_gap: what the change of the class's level adds to the gap [bits per byte of the text]
select
    g.model,
    g.byte_class,
    case g.byte_class
        when 'space' then 'white space'
        when 'punctuation' then 'punctuation'
        when 'digits' then 'numbers and dates'
        when 'names' then 'capitalised words'
        when 'words' then 'other words'
        when 'urls' then 'addresses and paths'
        when 'identifiers' then 'names in code'
        when 'other_script' then 'other scripts'
        when 'no_text' then 'tokens without text'
        else g.byte_class
    end as label,
    g.share_of_gap,
    g.share_of_gap_low,
    g.share_of_gap_high,
    g.part_of_gap,
    g.part_of_gap_low,
    g.part_of_gap_high,
    g.bits_per_byte_gap,
    g.bits_per_byte_gap_low,
    g.bits_per_byte_gap_high,
    g.bits_per_byte_before,
    g.bits_per_byte_after,
    a.growth_per_year,
    a.growth_per_year_low,
    a.growth_per_year_high,
    g.num_months_before,
    g.num_months_after,
    g.reason
from byte_class_gap_at(cast(null as date)) as g
left join byte_class_ageing as a
    on
        g.model = a.model
        and a.source is null
        and g.protocol = a.protocol
        and g.byte_class = a.byte_class
where g.protocol = $protocol and g.source is null
order by g.model asc, g.part_of_gap desc, g.byte_class asc
