from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = (("graphile_worker", "0001_initial"),)
    operations = (
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item", models.TextField()),
                ("receipt", models.TextField(null=True)),
            ],
            options={"db_table": "orders"},
        ),
    )
