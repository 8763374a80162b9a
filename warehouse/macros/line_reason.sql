-- Why a line or a correlation over models, or an interval, is NULL; NULL if none is.
-- Parameters: num_models with both figures; is_defined, they are enough and neither side is
--   constant; figure, the name of what needs a fourth model for its interval.
create or replace macro line_reason(num_models, is_defined, figure) as
    case
        when num_models < minimum('models of a line')
            then too_few(num_models, 'model', ' with both figures', 'models of a line')
        when not is_defined then 'all models have the same figure, or the same score'
        when num_models < minimum('models of a correlation')
            then
                'no interval of ' || figure || ': '
                || too_few(
                    num_models, 'model', ' with both figures', 'models of a correlation'
                )
    end;
