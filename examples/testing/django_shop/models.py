"""Orders."""

from django.db import models


class Order(models.Model):
    """An order of one customer."""

    customer = models.CharField(max_length=100)
    total = models.IntegerField()
    status = models.CharField(max_length=20, default="new")
    receipt = models.CharField(max_length=100, null=True, unique=True)

    def __str__(self) -> str:
        return f"order {self.pk} of {self.customer}"
