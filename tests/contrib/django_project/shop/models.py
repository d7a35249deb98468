from django.db import models


class Order(models.Model):
    item = models.TextField()
    lane = models.TextField(default="")
    attempt = models.IntegerField(default=0)
