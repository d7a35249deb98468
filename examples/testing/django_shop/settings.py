"""Settings for the tests: the server that DATABASE_URL names."""

import os

from psycopg.conninfo import conninfo_to_dict

server = conninfo_to_dict(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": server.get("dbname", "postgres"),
        "USER": server.get("user", ""),
        "PASSWORD": server.get("password", ""),
        "HOST": server.get("host", ""),
        "PORT": server.get("port", ""),
    }
}
INSTALLED_APPS = ["django_shop"]
SECRET_KEY = "only for tests"  # noqa: S105
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
