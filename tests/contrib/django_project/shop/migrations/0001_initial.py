from django.db import migrations, models


class Migration(migrations.Migration):
    """Comes after the queue's schema, as a migration that adds jobs must."""

    dependencies = (("graphile_worker", "0001_initial"),)
    operations = (
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item", models.TextField()),
                ("lane", models.TextField(default="")),
                ("attempt", models.IntegerField(default=0)),
            ],
        ),
    )
