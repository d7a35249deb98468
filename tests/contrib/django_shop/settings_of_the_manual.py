# Appended to the settings of `django-admin startproject shop .`
import os
from datetime import timedelta
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
INSTALLED_APPS += [  # noqa: F821
    *([] if find_spec("django.tasks") else ["django_tasks"]),
    "gw_core.contrib.django",
    "orders",
]
TASKS = {
    "default": {
        "BACKEND": "gw_core.contrib.django.GraphileWorkerBackend",
        "QUEUES": ["default", "emails"],
        "OPTIONS": {"KEEP_RESULTS": timedelta(days=7)},
    }
}
ALLOWED_HOSTS = ["*"]
FILES, FOLDER = "django.core.mail.backends.filebased.EmailBackend", BASE_DIR / "mails"  # noqa: F821
if "MAILERS" in globals():  # Django 6.1
    MAILERS = {"default": {"BACKEND": FILES, "OPTIONS": {"file_path": FOLDER}}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = FILES, FOLDER
