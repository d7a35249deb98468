"""A small project; `DATABASE_URL` names its database."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec

from psycopg.conninfo import conninfo_to_dict

parts = conninfo_to_dict(os.environ["DATABASE_URL"])
CONN_MAX_AGE = json.loads(os.environ.get("TEST_CONN_MAX_AGE", "0"))
POOL = json.loads(os.environ.get("TEST_POOL", "null"))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": str(parts.get("port", "")),
        "CONN_MAX_AGE": CONN_MAX_AGE,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"pool": POOL} if POOL else {},
    }
}
SECRET_KEY = "tests"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *(["django_tasks"] if find_spec("django.tasks") is None else []),
    "gw_core.contrib.django",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
GRAPHILE = "gw_core.contrib.django.GraphileWorkerBackend"
TASKS = {
    "default": {
        "BACKEND": GRAPHILE,
        "QUEUES": ["default", "slow"],
        "OPTIONS": {"MODULES": ["extra_tasks"], "ALIASES": {"shop.old.create_order": "shop.tasks.create_order"}},
    }
}
