"""Settings shared by every way of running Firm Memory.

The environment or ``.env`` decides; docs/configuration.md lists what can be set.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import environ
from csp.constants import NONE, SELF

from apps.core.database import database_settings, is_owner_command
from apps.core.environment import Environment, base_url, listening, web_processes

BASE_DIR = Path(__file__).resolve().parent.parent.parent

env = environ.Env()
if ENV_FILE := os.environ.get("FIRM_MEMORY_ENV_FILE", str(BASE_DIR / ".env")):
    env.read_env(ENV_FILE)
environment = Environment(os.environ)
if os.environ.get("FIRM_MEMORY_ENV_FILE") and not Path(ENV_FILE).is_file():
    environment.problem(f"FIRM_MEMORY_ENV_FILE is {ENV_FILE!r}. Name a file that is there, or leave it empty for none.")

DATA_DIR = environment.folder("FIRM_MEMORY_DATA_DIR", BASE_DIR / ".data")
DATABASE_URL = env.str("DATABASE_URL", default="")
OWNER_DATABASE_URL = env.str("FIRM_MEMORY_OWNER_DATABASE_URL", default="")
if OWNER_DATABASE_URL and is_owner_command(sys.argv):
    _database = database_settings(OWNER_DATABASE_URL, data_dir=DATA_DIR, variable="FIRM_MEMORY_OWNER_DATABASE_URL")
else:
    _database = database_settings(DATABASE_URL, data_dir=DATA_DIR)
DATABASES = {"default": _database}
STARTUP_CHECKS = [
    "apps.core.database.check_database",
    "apps.core.hardening.check_triggers",
    "apps.memories.providers.registry.check_embedder_matches_pool",
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

FIRM_MEMORY_BIND, FIRM_MEMORY_PORT = listening(environment)
# Used by gunicorn.conf.py, which gunicorn reads without these settings; looked at here, so that `up` refuses them.
FIRM_MEMORY_WEB_WORKERS, FIRM_MEMORY_WEB_THREADS = web_processes(environment)
FIRM_MEMORY_BASE_URL = base_url(environment, FIRM_MEMORY_BIND, FIRM_MEMORY_PORT)
# Agents may be let in by OAuth as well, and then who may register as a client: nobody, those that lead back to a known
# place, or anybody. Known are this computer, these hosts by https, and these schemes of programs.
FIRM_MEMORY_OAUTH = environment.switch("FIRM_MEMORY_OAUTH", default=False)
FIRM_MEMORY_OAUTH_REGISTRATION = environment.choice(
    "FIRM_MEMORY_OAUTH_REGISTRATION", "known", among=["off", "known", "on"]
)
FIRM_MEMORY_OAUTH_HOSTS = environment.hosts("FIRM_MEMORY_OAUTH_HOSTS")
FIRM_MEMORY_OAUTH_SCHEMES = environment.schemes("FIRM_MEMORY_OAUTH_SCHEMES")
FIRM_MEMORY_PROVIDER = environment.choice("FIRM_MEMORY_PROVIDER", "mem0", among=["mem0", "inmemory"])
FIRM_MEMORY_EMBEDDER = env.str("FIRM_MEMORY_EMBEDDER", default="local")
FIRM_MEMORY_EMBEDDER_DIMENSIONS = environment.number("FIRM_MEMORY_EMBEDDER_DIMENSIONS", 0, most=16_000)
FIRM_MEMORY_EMBEDDER_THREADS = environment.number("FIRM_MEMORY_EMBEDDER_THREADS", 2, most=1_024)
# How raw material becomes facts. `rules` asks no model; the model of the others is called through LiteLLM.
FIRM_MEMORY_EXTRACTOR = environment.choice("FIRM_MEMORY_EXTRACTOR", "rules", among=["llm", "provider", "rules", "none"])
FIRM_MEMORY_LLM_MODEL = environment.text("FIRM_MEMORY_LLM_MODEL")
if FIRM_MEMORY_EXTRACTOR in ("llm", "provider") and not FIRM_MEMORY_LLM_MODEL:
    environment.problem(
        f"FIRM_MEMORY_EXTRACTOR is {FIRM_MEMORY_EXTRACTOR}, which asks a language model, and FIRM_MEMORY_LLM_MODEL "
        "names none. Name one as LiteLLM does, such as openai/gpt-4o-mini, or set FIRM_MEMORY_EXTRACTOR to rules."
    )
# What a question is after, where no rule knows its wording: `rules` takes it for a look-up, `model` asks the model.
FIRM_MEMORY_INTENT = environment.choice("FIRM_MEMORY_INTENT", "rules", among=["rules", "model"])
if FIRM_MEMORY_INTENT == "model" and not FIRM_MEMORY_LLM_MODEL:
    environment.problem(
        "FIRM_MEMORY_INTENT is model, and FIRM_MEMORY_LLM_MODEL names none. Name one as LiteLLM does, such as "
        "openai/gpt-4o-mini, or set FIRM_MEMORY_INTENT to rules."
    )
# Tokens of all models in a day (UTC), after which material waits for the next one. 0: no limit.
FIRM_MEMORY_LLM_DAILY_TOKENS = environment.number("FIRM_MEMORY_LLM_DAILY_TOKENS", 0, most=10**12)
# Shorter material than this is noise unless it holds a signal of a decision; teams add their own, with commas between.
FIRM_MEMORY_PREFILTER_LENGTH = environment.number("FIRM_MEMORY_PREFILTER_LENGTH", 40, most=10_000)
FIRM_MEMORY_PREFILTER_SIGNALS = environment.listed("FIRM_MEMORY_PREFILTER_SIGNALS")
# Seconds that one call may take. The worker ends a task after 300, whatever it waits for.
FIRM_MEMORY_LLM_TIMEOUT = environment.number("FIRM_MEMORY_LLM_TIMEOUT", 60, least=1, most=120)
FIRM_MEMORY_THROTTLE = environment.switch("FIRM_MEMORY_THROTTLE", default=True)
# Requests a minute, for each principal; `anonymous` for each address that shows no valid credentials.
FIRM_MEMORY_RATES = {
    "read": environment.number("FIRM_MEMORY_READS_PER_MINUTE", 1200, least=1, most=1_000_000),
    "write": environment.number("FIRM_MEMORY_WRITES_PER_MINUTE", 600, least=1, most=1_000_000),
    "search": environment.number("FIRM_MEMORY_SEARCHES_PER_MINUTE", 600, least=1, most=1_000_000),
    "anonymous": environment.number("FIRM_MEMORY_ANONYMOUS_PER_MINUTE", 60, least=1, most=1_000_000),
    "registration": environment.number("FIRM_MEMORY_OAUTH_REGISTRATIONS_PER_MINUTE", 10, least=1, most=1_000_000),
}
# Days after which a working note expires where neither whoever writes it nor its type's category says so.
FIRM_MEMORY_NOTE_DAYS = environment.number("FIRM_MEMORY_NOTE_DAYS", 30, least=1, most=90)
FIRM_MEMORY_METRICS_TOKEN = environment.text("FIRM_MEMORY_METRICS_TOKEN")
if FIRM_MEMORY_METRICS_TOKEN and len(FIRM_MEMORY_METRICS_TOKEN) < 20:
    environment.problem(
        "FIRM_MEMORY_METRICS_TOKEN is too short. Use at least 20 random characters, such as the output of "
        "`openssl rand -hex 20`, or leave it out."
    )
# How long a repeated request waits for the first one with its Idempotency-Key.
FIRM_MEMORY_IDEMPOTENCY_WAIT_MS = environment.number("FIRM_MEMORY_IDEMPOTENCY_WAIT_MS", 10_000, least=1, most=600_000)
# How many proxies of ours stand before this service, each adding to X-Forwarded-For. None: the header is not read.
ALLAUTH_TRUSTED_PROXY_COUNT = environment.number("FIRM_MEMORY_PROXIES", 0, most=20)

DEBUG = False
ROOT_URLCONF = "firmmemory.urls"
WSGI_APPLICATION = "firmmemory.wsgi.application"

INSTALLED_APPS = [
    "apps.accounts.admin_config.FirmAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.google",
    "allauth.idp.oidc",
    "csp",
    "django_htmx",
    "django_q",
    "pgtrigger",
    "rest_framework",
    "drf_spectacular",
    "apps.core",
    "apps.accounts",
    "apps.oauth",
    "apps.taxonomy",
    "apps.scopes",
    "apps.sources",
    "apps.memories",
    "apps.retrieval",
    "apps.candidates",
    "apps.capture",
    "apps.approvals",
    "apps.answers",
    "apps.insights",
    "apps.evals",
    "apps.agents",
]

MIDDLEWARE = [
    "apps.core.middleware.RequestIdMiddleware",
    "apps.core.middleware.HeadMiddleware",
    "apps.core.middleware.PatienceMiddleware",
    "apps.core.middleware.HealthMiddleware",
    "apps.core.middleware.ProblemMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "apps.accounts.middleware.PrincipalMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.accounts.context_processors.principal",
                "apps.approvals.context_processors.review",
            ],
        },
    },
]

# One cache for all processes, in the database: throttles and allauth's rate limits count across workers.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "core_cache"},
    # The worker notes twice a second how it is; nobody asks, and in the database that would be all it does.
    "qcluster": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
# Served from where they lie; production collects and compresses them first.
STATIC_ROOT: Path | None = None
WHITENOISE_USE_FINDERS = True
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# --- who may come in -------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_FORMS = {"login": "apps.accounts.forms.EntranceForm"}
ACCOUNT_ADAPTER = "apps.accounts.adapter.InvitedOnlyAccountAdapter"
SOCIALACCOUNT_ADAPTER = "apps.accounts.adapter.InvitedOnlySocialAdapter"
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {}
if environment.text("GOOGLE_CLIENT_ID"):
    if not environment.text("GOOGLE_CLIENT_SECRET"):
        environment.problem("GOOGLE_CLIENT_SECRET is missing. Set it beside GOOGLE_CLIENT_ID, or leave both out.")
    SOCIALACCOUNT_PROVIDERS["google"] = {
        "APPS": [
            {
                "client_id": environment.text("GOOGLE_CLIENT_ID"),
                "secret": environment.text("GOOGLE_CLIENT_SECRET"),
                "key": "",
            }
        ],
        "SCOPE": ["profile", "email"],
    }
# Of allauth's identity provider: codes for a minute, access tokens for a quarter of an hour, refresh tokens once and
# for 30 days. Tokens are opaque, and there are no ID tokens, so no key signs anything.
IDP_OIDC_AUTHORIZATION_CODE_EXPIRES_IN = 60
IDP_OIDC_ACCESS_TOKEN_EXPIRES_IN = 15 * 60
IDP_OIDC_REFRESH_TOKEN_EXPIRES_IN = 30 * 24 * 3600
IDP_OIDC_ROTATE_REFRESH_TOKEN = True
IDP_OIDC_ACCESS_TOKEN_FORMAT = "opaque"  # noqa: S105
IDP_OIDC_AUTH_METHODS = ["none"]
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "apps.core.problems.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

# --- pages load nothing from elsewhere and run no inline script -------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
        "manifest-src": [SELF],
    }
}
if SOCIALACCOUNT_PROVIDERS:
    # Chromium holds the redirect that follows a form to the same rule as the form.
    CONTENT_SECURITY_POLICY["DIRECTIVES"]["form-action"].append("https://accounts.google.com")

# --- REST -------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.accounts.authentication.TokenAuthentication",
        "apps.accounts.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["apps.accounts.permissions.HasPrincipal"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.parsers.StrictJSONParser"],
    "DEFAULT_THROTTLE_CLASSES": ["apps.accounts.throttling.PrincipalThrottle"],
    "DEFAULT_SCHEMA_CLASS": "apps.core.openapi.ProblemAutoSchema",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.core.negotiation.AlwaysTheFirst",
    "EXCEPTION_HANDLER": "apps.core.problems.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Firm Memory",
    "DESCRIPTION": "Propose, review and search what a firm decided and why.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # Choices stay where they are used: names made up for them would change with every new field.
    "POSTPROCESSING_HOOKS": [],
}

# --- background work: the ORM broker is an outbox, a task is queued in the transaction that needs it -
Q_CLUSTER = {
    "name": "firm-memory",
    "orm": "default",
    "cache": "qcluster",
    "workers": environment.number("FIRM_MEMORY_WORKERS", 1, least=1, most=256),
    "timeout": 300,
    "retry": 360,
    "max_attempts": 5,
    "ack_failures": True,
    "save_limit": -1,
    "bulk": 10,
    "poll": 0.5,
    "catch_up": False,
    "label": "Background tasks",
}

LOG_LEVEL = environment.choice("FIRM_MEMORY_LOG_LEVEL", "INFO", among=["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "apps.core.logs.RequestIdFilter"},
        "address": {"()": "apps.core.logs.AddressFilter"},
        "database_down": {"()": "apps.core.logs.DatabaseDownFilter"},
    },
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["request_id", "address", "database_down"],
        },
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # It has a line for every task; what a task has to say it logs itself.
        "django-q": {"level": "WARNING"},
        # It has three lines for every request of an agent.
        "mcp": {"level": "WARNING"},
        # It would log the codes that it makes.
        "oauthlib": {"level": "WARNING"},
    },
}

environment.refuse()
