"""Behind a proxy, on a PostgreSQL of your own.

Refuses to start without a secret key, allowed hosts and a database.
"""

from django.core.exceptions import ImproperlyConfigured

from apps.core.environment import number

from .base import *  # noqa: F403
from .base import BASE_DIR, DATABASE_URL, env

SECRET_KEY = env.str("SECRET_KEY", default="")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
if len(SECRET_KEY) < 50:
    raise ImproperlyConfigured("Set SECRET_KEY to a random text of at least 50 characters.")
if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured(
        "Set ALLOWED_HOSTS to the host names this service answers to, without wildcards for all."
    )
if not DATABASE_URL:
    raise ImproperlyConfigured("Set DATABASE_URL to a PostgreSQL with pgvector; the embedded one is for one machine.")

CSRF_TRUSTED_ORIGINS = env.list(
    "CSRF_TRUSTED_ORIGINS", default=[f"https://{host}" for host in ALLOWED_HOSTS if not host.startswith(".")]
)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_SSL_REDIRECT = env.bool("FIRM_MEMORY_SSL_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("FIRM_MEMORY_BEHIND_PROXY", default=True) else None
)
ALLAUTH_TRUSTED_PROXY_COUNT = number("FIRM_MEMORY_PROXIES", 1 if SECURE_PROXY_SSL_HEADER else 0)
SECURE_HSTS_SECONDS = number("FIRM_MEMORY_HSTS_SECONDS", 31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
