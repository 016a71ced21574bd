from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase

from apps.core.problems import MethodNotAllowed, answer

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def only(*methods: str) -> Callable[[View[P]], View[P]]:
    """Answer every other method with the 405 page: reloading what a form led to asks for its address by GET."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method in methods:
                return view(request, *args, **kwargs)
            refusal = MethodNotAllowed(f"This address does not take {request.method}.")
            response = answer(refusal, request)
            response["Allow"] = ", ".join(methods)
            return response

        return guarded

    return decorate


posted = only("POST")
looked_at = only("GET", "HEAD")
