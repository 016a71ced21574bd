"""Behind a proxy, on a PostgreSQL of your own.

Refuses to start without a secret key, allowed hosts and a database.
"""

from .base import *  # noqa: F403
from .base import BASE_DIR, DATABASE_URL, FIRM_MEMORY_BASE_URL, FIRM_MEMORY_OAUTH, environment

SECRET_KEY = environment.text("SECRET_KEY")
ALLOWED_HOSTS = environment.listed("ALLOWED_HOSTS")
if len(SECRET_KEY) < 50:
    environment.problem("Set SECRET_KEY to a random text of at least 50 characters.")
if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
    environment.problem("Set ALLOWED_HOSTS to the host names this service answers to, without wildcards for all.")
if not DATABASE_URL:
    environment.problem("Set DATABASE_URL to a PostgreSQL with pgvector; the embedded one is for one machine.")
if FIRM_MEMORY_OAUTH and not (FIRM_MEMORY_BASE_URL.startswith("https://") and environment.text("FIRM_MEMORY_BASE_URL")):
    environment.problem(
        "FIRM_MEMORY_OAUTH is on: set FIRM_MEMORY_BASE_URL to the address that people and agents use, with https, such "
        "as https://memory.example.com."
    )

CSRF_TRUSTED_ORIGINS = environment.origins(
    "CSRF_TRUSTED_ORIGINS", [f"https://{host}" for host in ALLOWED_HOSTS if not host.startswith(".")]
)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_SSL_REDIRECT = environment.switch("FIRM_MEMORY_SSL_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if environment.switch("FIRM_MEMORY_BEHIND_PROXY", default=True) else None
)
ALLAUTH_TRUSTED_PROXY_COUNT = environment.number("FIRM_MEMORY_PROXIES", 1 if SECURE_PROXY_SSL_HEADER else 0, most=20)
SECURE_HSTS_SECONDS = environment.number("FIRM_MEMORY_HSTS_SECONDS", 31_536_000, most=315_360_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

environment.refuse()
