from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ScopeChallenge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "digest",
                    models.CharField(
                        editable=False, max_length=64, unique=True, verbose_name="digest"
                    ),
                ),
                ("moment", models.DateTimeField(editable=False, verbose_name="moment")),
            ],
            options={
                "verbose_name": "challenge for scopes",
                "verbose_name_plural": "challenges for scopes",
            },
        ),
    ]
