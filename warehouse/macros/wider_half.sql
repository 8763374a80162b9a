-- Half of an interval about time: the wider of documents' and months'. NULL if one is unknown.
create or replace macro wider_half(documents, months) as
    case when documents > months then documents when documents <= months then months end;
