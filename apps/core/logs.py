from __future__ import annotations

import logging

from apps.core import request_id


class RequestIdFilter(logging.Filter):
    """Gives every record the id of the request it was written in, or a dash outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.current.get() or "-"
        return True
