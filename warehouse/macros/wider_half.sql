-- Half of an interval about time: the wider of documents' and months'; NULL without the latter.
-- The scatter of months includes the errors of their documents: months' alone is an interval, too.
create or replace macro wider_half(documents, months) as
    case when documents > months then documents else months end;
