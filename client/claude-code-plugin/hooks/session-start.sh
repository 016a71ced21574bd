#!/bin/sh
# Without fm there is nothing to do, and a session is never held up.
command -v fm >/dev/null 2>&1 || exit 0
fm hook session-start || exit 0
