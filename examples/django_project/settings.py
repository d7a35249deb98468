"""Django and gw: a request writes an order and enqueues its task in one transaction.

Run it with: python manage.py migrate, python manage.py runserver, and beside it: python manage.py gw run
"""

import os
from importlib.util import find_spec

from psycopg.conninfo import conninfo_to_dict

database = conninfo_to_dict(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database["dbname"],
        "USER": database.get("user", ""),
        "PASSWORD": database.get("password", ""),
        "HOST": database.get("host", ""),
        "PORT": str(database.get("port", "")),
    }
}
INSTALLED_APPS = [
    *([] if find_spec("django.tasks") else ["django_tasks"]),  # Django 5.2 has its tasks in a package
    "gw_core.contrib.django",
    "shop",
]
TASKS = {"default": {"BACKEND": "gw_core.contrib.django.GraphileWorkerBackend"}}
ROOT_URLCONF = "urls"
SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
ALLOWED_HOSTS = ["*"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
