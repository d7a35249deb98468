"""Tasks outside the apps, which `OPTIONS["MODULES"]` names."""

from api import task
from shop.models import Order


@task(queue_name="slow")
def extra() -> None:
    Order.objects.create(item="extra")
