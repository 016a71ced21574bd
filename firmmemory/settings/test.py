"""The test suite: a real PostgreSQL in a data folder of its own, untouched by ``.env`` and `make up`."""

import os
from pathlib import Path

from apps.core.embedded_postgres import borrow

ROOT = Path(__file__).resolve().parent.parent.parent
TEST_DATA_DIR = Path(os.environ.get("FIRM_MEMORY_TEST_DATA_DIR", str(ROOT / ".data" / "test")))
os.environ["FIRM_MEMORY_DATA_DIR"] = str(TEST_DATA_DIR)
os.environ["FIRM_MEMORY_ENV_FILE"] = ""

if not os.environ.get("DATABASE_URL"):
    borrow(TEST_DATA_DIR, durable=False)

from .base import *  # noqa: E402, F403
from .base import DATABASES, Q_CLUSTER, env  # noqa: E402

SECRET_KEY = "a key for tests only"  # noqa: S105
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
DATABASES["default"]["CONN_MAX_AGE"] = 0
DATABASES["default"]["TEST"] = {"NAME": env.str("FIRM_MEMORY_TEST_DATABASE", default="test_firm_memory")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
Q_CLUSTER["sync"] = False
WHITENOISE_AUTOREFRESH = True  # every test client makes its middleware anew, which else reads all static files
