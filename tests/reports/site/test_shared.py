import duckdb
import pytest

from reports.site.context import Shared


def test_a_shared_view_is_computed_once() -> None:
    connection = duckdb.connect()
    connection.execute("""
        create schema internal;
        create sequence numbers;
        create view internal.shared as select nextval('numbers') as number;
        create macro internal.shared_at(more) as table select number + more from internal.shared;
        create view figure as select * from (internal.shared_at(10) cross join range(1));
        create view other as select * from range(1);
        create table lost as select 1 as number;
        create view failing as select * from lost;
        create view reader as select * from failing;
        drop table lost;
    """)
    shared = Shared(connection, ["shared", "failing"])
    for _ in range(2):
        for sql in ("select number + 10 from internal.shared", "select * from main.figure"):
            assert connection.sql(shared.prepared(sql)).fetchall()[0][0] == 11
    assert connection.sql("select number from internal.shared").fetchall() == [(2,)]
    sql = "select 'internal.shared' from main.other"
    assert shared.prepared(sql) == sql
    with pytest.raises(duckdb.CatalogException, match="lost"):
        connection.sql(shared.prepared("from reader"))
