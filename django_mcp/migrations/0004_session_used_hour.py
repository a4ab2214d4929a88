import django_mcp.clock
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('django_mcp', '0003_redeemed_state'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='used_hour',
            field=models.PositiveIntegerField(db_default=0, default=django_mcp.clock.DatabaseHour, help_text='Hours since 1970, in UTC; 0 where a version before has inserted the row.', verbose_name='hour of last use'),
        ),
    ]
