from django.db import transaction
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from gw_core.contrib.django import client, enqueue_many, job_spec
from orders.models import Order, Report
from orders.tasks import ask_the_bank, bind_book, describe_process, make_invoice, make_page, make_report


def place_order(customer, amount):
    with transaction.atomic():
        order = Order.objects.create(customer=customer, amount=amount)
        make_invoice.enqueue(order.pk)
        if amount < 0:
            raise ValueError("an order costs something")
    return order


@csrf_exempt
def order(request, amount):
    try:
        return JsonResponse({"id": place_order("ann@example.org", int(amount)).pk}, status=201)
    except ValueError as error:
        return JsonResponse({"error": str(error)}, status=409)


@csrf_exempt
def orders(request, number):
    placed = Order.objects.bulk_create(Order(customer="ann@example.org", amount=n) for n in range(number))
    return JsonResponse({"ids": enqueue_many(make_invoice, [[each.pk] for each in placed])}, status=201)


@csrf_exempt
def report(request):
    made = Report.objects.create()
    made.task = make_report.enqueue(made.pk).id
    made.save()
    return JsonResponse({"id": made.pk}, status=201)


def progress(request, pk):
    made = Report.objects.get(pk=pk)
    return JsonResponse({"lines": made.lines_done, "status": make_report.get_result(made.task).status.name})


@csrf_exempt
def cancel(request, pk):
    [found] = client().jobs.cancel([int(Report.objects.get(pk=pk).task)], by="a customer")
    return JsonResponse({"result": str(found.result)})


@csrf_exempt
def book(request):
    made = Report.objects.create()
    with transaction.atomic():
        group = client().groups.add(
            [job_spec(make_page, made.pk, number) for number in range(10)],
            then=job_spec(bind_book, made.pk),
            on_failure="cancel",
        )
    return JsonResponse({"text": client().result(group.id, timeout=30)})


@csrf_exempt
def environment(request):
    return JsonResponse({"found": client().result(int(describe_process.enqueue().id), timeout=30)})


@csrf_exempt
def bank(request):
    asked = ask_the_bank.enqueue()
    return JsonResponse({"id": asked.id})


def bank_status(request, task_id):
    found = ask_the_bank.get_result(str(task_id))
    return JsonResponse({"status": found.status.name, "errors": [each.exception_class_path for each in found.errors]})


urlpatterns = [
    path("order/<amount>", order),
    path("orders/<int:number>", orders),
    path("report", report),
    path("report/<int:pk>", progress),
    path("report/<int:pk>/cancel", cancel),
    path("book", book),
    path("environment", environment),
    path("bank", bank),
    path("bank/<int:task_id>", bank_status),
]
