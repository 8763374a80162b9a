-- Monthly bits per byte of a source by kind of document, such as the fields of arXiv, and by genre.
-- Grain: one row per model, source, protocol, month, genre, kind. kind NULL: all of the genre.
-- Parameter: source_name, such as 'arxiv'.
-- kind: as source_mix. genre: of arXiv's fields, STEM or not STEM as in Table 10 of Zhu et al.,
--   which counts quantitative biology as not STEM; NULL for other kinds.
-- *_low and *_high bound a 95 % interval for other documents of the month. reason: NULL for a kind
--   with one cluster, and for a genre.
-- Source: Zhu et al. 2024, Tables 6 and 10; docs/metrics.md (Standardised to a fixed mix).
create or replace macro papers.monthly_loss_by_kind_at(source_name) as table
    with kinds as (
        select
            *,
            case
                when split_part(kind, ', ', 1) in ('econ', 'q-bio', 'q-fin') then 'not STEM'
                when
                    split_part(kind, ', ', 1) in (
                        'astro-ph', 'cond-mat', 'cs', 'eess', 'gr-qc', 'hep-ex', 'hep-lat',
                        'hep-ph', 'hep-th', 'math', 'math-ph', 'nlin', 'nucl-ex', 'nucl-th',
                        'physics', 'quant-ph', 'stat'
                    )
                    then 'STEM'
            end as genre
        from internal.cell_kinds
        where source = source_name and month is not null
    ),

    summed as (
        select
            model,
            source,
            protocol,
            month,
            genre,
            kind,
            sum(nll_nats) / (ln(2) * nullif(sum(num_bytes), 0)) as bits_per_byte,
            case
                when grouping(kind) = 0
                    then any_value(t_975(degrees_of_freedom) * standard_error)
            end as half,
            cast(sum(num_documents) as bigint) as num_documents,
            cast(sum(num_bytes) as bigint) as num_bytes
        from kinds
        group by
            grouping sets (
                (model, source, protocol, month, genre, kind),
                (model, source, protocol, month, genre)
            )
        having grouping(kind) = 0 or genre is not null
    )

    select
        * exclude (half),
        case when kind is null then 'genre' else 'kind' end as scope,
        case when half > bits_per_byte then 0 else bits_per_byte - half end as bits_per_byte_low,
        bits_per_byte + half as bits_per_byte_high,
        case
            when bits_per_byte is null then 'no chunk with a loss'
            when kind is null then 'no interval: a genre of several kinds'
            when half is null then 'no interval: all documents of the kind are in one cluster'
        end as reason
    from summed;
