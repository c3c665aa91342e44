"""`each_row` runs every row of a table; it fails or is skipped according to its rows."""

from __future__ import annotations

import pytest
import tables
from tables import each_row


def test_every_row_runs_and_those_that_fail_are_named():
    seen = []

    @each_row(("a", "b"), [(1, 1), (1, 2), pytest.param(3, 4, id="last"), (5, 5)])
    def test(a, b, other):
        seen.append((a, b, other))
        assert a == b, f"{a} is not {b}"

    with pytest.raises(AssertionError) as caught:
        test(other=0)
    assert seen == [(1, 1, 0), (1, 2, 0), (3, 4, 0), (5, 5, 0)]
    first, second = [line for line in str(caught.value).splitlines() if "AssertionError" in line]
    assert first.startswith("(1, 2): AssertionError: 1 is not 2")
    assert second.startswith("last: AssertionError: 3 is not 4")


@pytest.mark.parametrize("rows", [[0, 0], [0, 1], [1, 2]])
def test_a_table_is_skipped_where_each_row_is(rows):
    @each_row("x", rows)
    def test(x):
        if x == 0:
            pytest.skip("a zero")
        assert x != 2

    if rows == [0, 0]:
        with pytest.raises(pytest.skip.Exception, match="a zero"):
            test()
    elif 2 in rows:
        with pytest.raises(AssertionError, match=r"^2: "):
            test()
    else:
        test()
        tables.skipped_rows.clear()


@each_row("x", [1, 2], ids=lambda x: f"number {x}")
@each_row("y", [3, 4])
@pytest.mark.parametrize("z", [5])
def test_tables_multiply_and_leave_other_parameters(x, y, z, request):
    assert (x in (1, 2), y in (3, 4), z) == (True, True, 5)
    assert "[5]" in request.node.name


def test_rows_that_are_skipped_beside_others_are_counted():
    @each_row("x", [0, 1, 0])
    def test(x):
        if x == 0:
            pytest.skip("a zero")

    test()
    counted = tables.skipped_rows[:]
    tables.skipped_rows.clear()
    assert counted == ["a zero", "a zero"]
