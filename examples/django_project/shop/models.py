from django.db import models


class Order(models.Model):
    item = models.TextField()
    receipt = models.TextField(null=True)

    class Meta:
        db_table = "orders"
