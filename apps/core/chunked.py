"""Bodies that say where they end only as they come (``Transfer-Encoding: chunked``), as streaming clients send them.

Django reads as many bytes as ``Content-Length`` says, and without one takes the body for empty. So such a body is read
here, to its end or to the largest size that any address takes, and handed on with the length it turned out to have. The
server in front has undone the chunks; that it does so is what ``wsgi.input_terminated`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

MAX_BYTES: Final = 32 * 1024 * 1024
_IN_MEMORY: Final = 1024 * 1024
_AT_ONCE: Final = 64 * 1024

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def with_chunked_bodies(application: Application, *, limit: int = MAX_BYTES) -> Application:
    """A larger body is declared as what it is, larger than anything that is taken: whoever reads it answers 413."""

    def wrapped(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not _is_chunked(environ):
            return application(environ, start_response)
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
            try:
                length = _copy(environ["wsgi.input"], body, limit)
            except OSError as error:
                # Cut off, or not in chunks at all: whoever reads it is told, and answers 400.
                environ |= {"wsgi.input": _Unreadable(error), "CONTENT_LENGTH": "1"}
                return application(environ, start_response)
            body.seek(0)
            environ |= {"wsgi.input": body, "CONTENT_LENGTH": str(length)}
            # Rendered before the body is closed; streamed answers read no request.
            return application(environ, start_response)

    return wrapped


def _is_chunked(environ: dict[str, Any]) -> bool:
    coding = environ.get("HTTP_TRANSFER_ENCODING", "").strip().lower()
    return coding == "chunked" and not environ.get("CONTENT_LENGTH") and bool(environ.get("wsgi.input_terminated"))


def _copy(source: IO[bytes], target: IO[bytes], limit: int) -> int:
    length = 0
    while length <= limit and (piece := source.read(_AT_ONCE)):
        length += len(piece)
        target.write(piece)
    # What is left unread does not matter: nobody takes this much, and the server ends the connection.
    return length if length <= limit else _BEYOND_ALL


_BEYOND_ALL: Final = 2**62


class _Unreadable:
    def __init__(self, error: OSError) -> None:
        self._error = error

    def read(self, size: int = -1) -> bytes:
        raise self._error

    def readline(self, size: int = -1) -> bytes:
        raise self._error
