from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from shop.models import Order
from shop.tasks import send_receipt


class SoldOutError(Exception):
    pass


@csrf_exempt
def create_order(request: HttpRequest, item: str) -> JsonResponse:
    try:
        with transaction.atomic():
            order = Order.objects.create(item=item)
            send_receipt.enqueue(order.id)
            if item == "sold-out":
                raise SoldOutError  # the transaction rolls back, and the job with it
    except SoldOutError:
        return JsonResponse({"error": "sold out"}, status=409)
    return JsonResponse({"id": order.id}, status=201)
