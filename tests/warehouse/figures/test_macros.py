from collections.abc import Iterator

import duckdb
import mpmath
import numpy as np
import pytest

from warehouse.database.schema import list_macros, read_sql


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for macro in list_macros():
            connection.execute(read_sql("macros", macro))
        yield connection


def value(database: duckdb.DuckDBPyConnection, call: str, *arguments: object) -> float | None:
    [(found,)] = database.execute(f"select {call}", arguments).fetchall()
    return None if found is None else float(found)


@pytest.mark.parametrize("x", [-38.0, -9.0, -7.07106, -3.3, -1.0, -1e-9, 0.0, 0.5, 1.96, 6.0])
def test_normal_cdf(database: duckdb.DuckDBPyConnection, x: float) -> None:
    found = value(database, "normal_cdf(?::double)", x)
    assert found == pytest.approx(float(mpmath.ncdf(x)), rel=1e-12, abs=1e-15)


def quantile(degrees_of_freedom: float) -> float:
    n = mpmath.mpf(degrees_of_freedom)

    def excess(log_t: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log(tail(mpmath.exp(log_t), n)) - mpmath.log(mpmath.mpf("0.05"))

    bounds = (mpmath.log(1.95), mpmath.log(13))
    return float(mpmath.exp(mpmath.findroot(excess, bounds, solver="anderson", tol=1e-20)))


def tail(t: mpmath.mpf, n: mpmath.mpf) -> mpmath.mpf:
    return mpmath.betainc(n / 2, mpmath.mpf(1) / 2, 0, n / (n + t * t), regularized=True)


@pytest.mark.parametrize("degrees", [1, 1.3, 2, 3.7, 5, 11.5, 30, 400, 1e6])
def test_t_975(database: duckdb.DuckDBPyConnection, degrees: float) -> None:
    with mpmath.workdps(30):
        assert value(database, "t_975(?::double)", degrees) == pytest.approx(
            quantile(degrees), rel=1e-7
        )


@pytest.mark.long
@pytest.mark.parametrize(
    ("degrees", "error"), [(1, 0.03), (2, 5e-4), (3, 3e-5), (5, 1e-6), (10, 1e-8), (100, 1e-9)]
)
def test_t_p_value(database: duckdb.DuckDBPyConnection, degrees: float, error: float) -> None:
    for t in np.linspace(-12, 12, 49):
        found = value(database, "t_p_value(?::double, ?::double)", float(t), degrees)
        assert found is not None
        exact = float(tail(mpmath.mpf(float(t)), mpmath.mpf(degrees)))
        assert found == pytest.approx(exact, abs=error)


def test_nothing_comes_of_nothing(database: duckdb.DuckDBPyConnection) -> None:
    for call in ("normal_cdf(null)", "t_975(null)", "t_p_value(null, 5)", "round_digits(null)"):
        assert value(database, call) is None, call


def test_sum_exactly_knows_no_order(database: duckdb.DuckDBPyConnection) -> None:
    rng = np.random.default_rng(4)
    numbers = np.exp(rng.normal(3, 4, 5000))
    sums = {
        value(
            database, "sum_exactly(x) from unnest(?::double[]) as t (x)", rng.permutation(numbers)
        )
        for _ in range(10)
    }
    assert len(sums) == 1
    assert sums.pop() == pytest.approx(numbers.sum(), rel=1e-12)
    assert value(database, "sum_exactly(x) from unnest([]::double[]) as t (x)") is None


@pytest.mark.parametrize(
    ("number", "rounded"),
    [(0.0, 0.0), (123456789.123456, 123456789.1), (1.23456789012345e-7, 1.234567890e-7)],
)
def test_round_digits(database: duckdb.DuckDBPyConnection, number: float, rounded: float) -> None:
    assert value(database, "round_digits(?::double)", number) == pytest.approx(rounded, rel=1e-15)
    assert value(database, "round_digits('inf'::double)") == float("inf")
