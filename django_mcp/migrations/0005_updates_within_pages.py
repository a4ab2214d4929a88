from django.db import migrations, models

TABLES = ('django_mcp_session', 'django_mcp_stream', 'django_mcp_pendingrequest')


def leave_room(apps, schema_editor):
    """Let new pages have room for the next versions of their rows."""
    for table in TABLES if schema_editor.connection.vendor == 'postgresql' else ():
        schema_editor.execute(f'ALTER TABLE {schema_editor.quote_name(table)} SET (fillfactor = 70)')


def leave_none(apps, schema_editor):
    for table in TABLES if schema_editor.connection.vendor == 'postgresql' else ():
        schema_editor.execute(f'ALTER TABLE {schema_editor.quote_name(table)} RESET (fillfactor)')


class Migration(migrations.Migration):

    dependencies = [
        ('django_mcp', '0004_session_used_hour'),
    ]

    operations = [
        # New indexes first: MySQL keeps one for each foreign key.
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['ended', 'used_hour'], name='mcp_session_unused'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['user', 'client_id', 'ended'], name='mcp_session_principal'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['used_hour'], name='mcp_session_hour'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['created'], name='mcp_session_created'),
        ),
        migrations.AddIndex(
            model_name='pendingrequest',
            index=models.Index(fields=['state', 'ended'], name='mcp_pending_ended'),
        ),
        migrations.RemoveIndex(model_name='session', name='mcp_session_idle'),
        migrations.RemoveIndex(model_name='session', name='mcp_session_owner'),
        migrations.RemoveIndex(model_name='session', name='mcp_session_recent'),
        migrations.RemoveIndex(model_name='session', name='mcp_session_ended'),
        migrations.RemoveIndex(model_name='pendingrequest', name='mcp_pending_lease'),
        migrations.RunPython(leave_room, leave_none),
    ]
