from __future__ import annotations

from django.db import migrations, models

import django_mcp.contrib.tokens.models


class Migration(migrations.Migration):
    dependencies = [
        ("django_mcp_tokens", "0001_initial"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="token",
            options={
                "ordering": ("-id",),
                "permissions": [("manage_own_tokens", "Can make and revoke tokens of their own")],
                "verbose_name": "token",
                "verbose_name_plural": "tokens",
            },
        ),
        migrations.AddField(
            model_name="token",
            name="read_only",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="It opens only what changes nothing.",
                verbose_name="for reading only",
            ),
        ),
        migrations.AddField(
            model_name="token",
            name="scopes",
            field=models.JSONField(
                blank=True,
                default=None,
                null=True,
                validators=[django_mcp.contrib.tokens.models.validate_scopes],
                verbose_name="scopes",
            ),
        ),
    ]
