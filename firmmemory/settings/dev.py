"""`make up` on one machine: embedded PostgreSQL, loopback, a secret key made on first start."""

from apps.core.secret_key import persistent_secret_key

from .base import *  # noqa: F403
from .base import DATA_DIR, FIRM_MEMORY_BIND, env

DEBUG = env.bool("FIRM_MEMORY_DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="") or persistent_secret_key(DATA_DIR)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", FIRM_MEMORY_BIND])
