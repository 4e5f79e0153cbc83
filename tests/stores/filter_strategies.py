"""Filters of every shape, for hypothesis; each store brings the fields and values that may trip it."""

from hypothesis import strategies as st

from dartboard.stores.filters import And, Compare, Equal, Exists, In, Not, Or


def leaves_of(fields, values, ranged):
    """Filters on one field: ``values`` may be equal to it, ``ranged`` before or after it."""
    return st.one_of(
        st.builds(Equal, fields, values),
        st.builds(In, fields, st.lists(values, max_size=4).map(tuple)),
        st.builds(Compare, fields, st.sampled_from(["<", "<=", ">", ">="]), ranged),
        st.builds(Exists, fields),
    )


def filters_of(leaves, *, max_leaves=6):
    """Such filters, and what and, or and not make of them."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, max_size=4).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=4).map(tuple)),
        ),
        max_leaves=max_leaves,
    )
