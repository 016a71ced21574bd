from __future__ import annotations

from django.http import HttpResponseRedirect


class SeeOther(HttpResponseRedirect):
    """After a form was taken: the browser gets the next page, and reloading it sends nothing again."""

    status_code = 303
