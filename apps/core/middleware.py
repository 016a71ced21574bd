from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apps.core import health, problems, request_id
from apps.core.patience import READ_SECONDS, WRITE_SECONDS, patience

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


class HeadMiddleware:
    """An answer to HEAD says how long its body would be, and has none."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.method == "HEAD" and isinstance(response, HttpResponse):
            response.setdefault("Content-Length", str(len(response.content)))
            response.content = b""
        return response


class PatienceMiddleware:
    """Whoever looks waits for the database for seconds at most, and whoever writes not for ever."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with patience(READ_SECONDS if request.method in ("GET", "HEAD") else WRITE_SECONDS):
            return self.get_response(request)


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
