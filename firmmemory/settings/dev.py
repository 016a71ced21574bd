"""`make up` on one machine: embedded PostgreSQL, loopback, a secret key made on first start."""

from apps.core.secret_key import persistent_secret_key

from .base import *  # noqa: F403
from .base import DATA_DIR, FIRM_MEMORY_BIND, environment

DEBUG = environment.switch("FIRM_MEMORY_DEBUG", default=False)
SECRET_KEY = environment.text("SECRET_KEY") or persistent_secret_key(DATA_DIR)
ALLOWED_HOSTS = environment.listed("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]", FIRM_MEMORY_BIND])
environment.refuse()
