from django.db import models


class Order(models.Model):
    customer = models.EmailField()
    amount = models.IntegerField()


class Invoice(models.Model):
    order = models.OneToOneField(Order, models.CASCADE)


class Report(models.Model):
    lines_done = models.IntegerField(default=0)
    task = models.TextField(default="")
    text = models.TextField(default="")


class Cart(models.Model):
    created_at = models.DateTimeField(auto_now_add=True)
