from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('django_mcp', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Claim',
            fields=[
                ('job', models.CharField(max_length=32, primary_key=True, serialize=False, verbose_name='job')),
                ('owner', models.CharField(max_length=32, verbose_name='process')),
                ('until', models.DateTimeField(verbose_name='until')),
            ],
            options={
                'verbose_name': 'claim',
                'verbose_name_plural': 'claims',
                'default_permissions': (),
            },
        ),
    ]
