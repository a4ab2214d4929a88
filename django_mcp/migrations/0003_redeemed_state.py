import django_mcp.clock
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('django_mcp', '0002_claims'),
    ]

    operations = [
        migrations.CreateModel(
            name='RedeemedState',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('call', models.UUIDField(editable=False, help_text="Who has inserted it: a value of that call's own.", verbose_name='call')),
                ('redeemed', models.DateTimeField(default=django_mcp.clock.DatabaseNow, verbose_name='redeemed')),
            ],
            options={
                'verbose_name': 'redeemed state',
                'verbose_name_plural': 'redeemed states',
                'indexes': [models.Index(fields=['redeemed'], name='mcp_redeemed_state_age')],
            },
        ),
    ]
