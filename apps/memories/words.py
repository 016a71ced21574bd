"""Finding rows by the words they hold, for lists that people filter. Search itself ranks, in the room above."""

from __future__ import annotations

from django.contrib.postgres.search import SearchQuery


class AllWords(SearchQuery):
    """Matches a search vector that holds every word of ``text``, parsed as documents are.

    A text without a word in it matches nothing. To be compared with ``search_vector=``: Django hands anything
    but its own class to ``plainto_tsquery`` once more.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.function = "fm_all_words"
