-- Two-sided p-value of a difference, by Student's t.
-- Parameters: difference; standard_error (0 means certainty); degrees_of_freedom, at least 1.
create or replace macro difference_p_value(difference, standard_error, degrees_of_freedom) as
    case
        when standard_error > 0
            then t_p_value(difference / standard_error, degrees_of_freedom)
        when standard_error = 0 then case when difference = 0 then 1 else 0 end
    end;
