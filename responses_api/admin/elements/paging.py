"""Pagination that stays fast with any number of rows."""

from functools import cached_property

from django.core.paginator import Paginator

COUNTED = 10_000


class CappedPaginator(Paginator):
    """Counts at most :data:`COUNTED` rows; further rows are reached by filters and search.

    Counting all rows of a large table takes longer than everything else on the page.
    """

    @cached_property
    def count(self) -> int:
        """The number of rows, at most :data:`COUNTED`."""
        return min(self._counted, COUNTED)

    @property
    def capped(self) -> bool:
        """Whether there are more rows than were counted."""
        return self._counted > COUNTED

    @cached_property
    def _counted(self) -> int:
        rows = self.object_list.order_by().values("pk")  # type: ignore[attr-defined]
        return int(rows[: COUNTED + 1].count())
