-- Why a cell has no figure, or no interval; NULL if it has both.
-- Parameters: is_finite, no loss is infinite or no number; num_bytes, the measured text;
--   num_documents; standard_error of the cell.
create or replace macro cell_reason(is_finite, num_bytes, num_documents, standard_error) as
    case
        when not is_finite then 'a loss is not finite'
        when coalesce(num_bytes, 0) = 0 then 'no chunk with a loss'
        when standard_error is null and num_documents = 1 then 'no interval: one document'
        when standard_error is null
            then 'no interval: all documents are in one cluster (a page, a repository, an archive)'
    end;
