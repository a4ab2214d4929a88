"""Fields of Django's models and forms as arguments of tools, and what is sent for them as values.

``field_types.py`` knows those of models, ``form_arguments.py`` those of forms.
"""
