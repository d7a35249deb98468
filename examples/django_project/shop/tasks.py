from shop.models import Order

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


@task
def send_receipt(order_id: int) -> None:
    order = Order.objects.get(id=order_id)
    order.receipt = f"sent for {order.item}"
    order.save()
