from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apps.core import health, problems, request_id

GetResponse = Callable[[HttpRequest], HttpResponseBase]


class RequestIdMiddleware:
    """Ties the answer, the log lines and what is recorded to one id."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # Not taken back here: Django logs an answer of 4xx and 5xx after the last middleware. See `CoreConfig`.
        chosen = request_id.accept(request.headers.get(request_id.HEADER))
        request_id.current.set(chosen)
        response = self.get_response(request)
        response[request_id.HEADER] = chosen
        return response


class HealthMiddleware:
    """Answers probes before any check of hosts, redirect to https, session or cookie."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        view = health.VIEWS.get(request.path)
        if view is None:
            return self.get_response(request)
        response = view(request)
        response["Content-Length"] = str(len(response.content))
        return response


class ProblemMiddleware:
    """Gives people and clients a sentence for every refusal, and 503 while the database does not answer.

    What a middleware below raises never arrives here as an exception: Django has made a response of it by
    calling ``problems.server_error``, which says the same.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        ours = problems.as_domain_error(error)
        return problems.answer(ours, request) if ours is not None else None
