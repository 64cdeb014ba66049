"""The settings of every process; only the environment decides on the shape."""

import tomllib
from datetime import timedelta

from responses_site import logs
from responses_site.env import LOCAL_NAMES
from responses_site.setting_kinds import BASE_DIR
from responses_site.settings import messaging
from responses_site.settings.databases import databases
from responses_site.settings.environment import env, secret_key
from responses_site.settings.variables import *  # noqa: F403

SECRET_KEY = secret_key
SECRET_KEY_FALLBACKS = list(env.secret_key_fallbacks)

# --- Django ----------------------------------------------------------------------------------------------------------

DEBUG = False
ROOT_URLCONF = "responses_site.urls"
ASGI_APPLICATION = "responses_site.asgi.application"
AUTH_USER_MODEL = "responses_api.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "rest_framework",
    "responses_api",
    "responses_site",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "responses_site.static_files.StaticFilesMiddleware",
    "responses_api.web.security_headers.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
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
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "responses_api.admin.sign_in.BoundedBackend",
]
# Failures are counted per name, and per name and address; failures during a lockout don't extend it.
AXES_LOCKOUT_PARAMETERS = ["username", ["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "responses_api.admin.sign_in.client_address"
AXES_LOCKOUT_CALLABLE = "responses_api.admin.sign_in.locked_out"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False  # the project's admin has its own page
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Static files are served from their apps, so that they need not be collected before a start.
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False

LOGGING_CONFIG = "responses_site.logs.configure"
LOGGING = logs.logging_config(level=env.log_level, form=env.log_format)

# --- access ----------------------------------------------------------------------------------------------------------

ALLOWED_HOSTS = list(env.allowed_hosts) or (list(LOCAL_NAMES) if env.bound_to_loopback else ["*"])
CSRF_TRUSTED_ORIGINS = list(env.csrf_trusted_origins)
DATA_UPLOAD_MAX_MEMORY_SIZE = env.body_max_bytes

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.behind_tls
SECURE_HSTS_SECONDS = 31_536_000 if env.behind_tls else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.behind_tls else None
# The proxy redirects to HTTPS (W008); HSTS for other hosts of the domain is its owner's decision (W005, W021).
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
if not env.team:
    # Cookies are shared by all ports of a host: two servers would sign out each other's users.
    SESSION_COOKIE_NAME = f"sessionid_{env.port}"
    CSRF_COOKIE_NAME = f"csrftoken_{env.port}"

# --- the API ----------------------------------------------------------------------------------------------------------

APPEND_SLASH = False
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["responses_api.api.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["responses_api.api.authentication.HasCaller"],
    "DEFAULT_RENDERER_CLASSES": ["responses_api.api.rendering.OrjsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "responses_api.api.rendering.OnlyJson",
    "EXCEPTION_HANDLER": "responses_api.api.exceptions.exception_handler",
    "UNAUTHENTICATED_USER": None,
    # OPTIONS must not return the docstrings of views.
    "DEFAULT_METADATA_CLASS": None,
}

# --- storage and messages --------------------------------------------------------------------------------------------

DATABASES = databases(env)
CHANNEL_LAYERS = messaging.channel_layers(env)

CELERY_BROKER_URL = messaging.broker_url(env)
CELERY_BROKER_TRANSPORT_OPTIONS = messaging.broker_transport_options(env)
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1}
CELERY_TASK_DEFAULT_QUEUE = messaging.QUEUE
# A message only says that there is work; the rows are the queue. So messages are not persisted, repeated or answered.
CELERY_TASK_DEFAULT_DELIVERY_MODE = "transient"
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False

# --- the server's own ------------------------------------------------------------------------------------------------

RESPONSES_VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
RESPONSES_TEAM = env.team
RESPONSES_BOUND_TO_LOOPBACK = env.bound_to_loopback
RESPONSES_OPEN_ACCESS = env.open_access
