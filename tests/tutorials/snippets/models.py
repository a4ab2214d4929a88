from __future__ import annotations

from django.db import models
from django.utils.html import format_html

LANGUAGES = [("c", "C"), ("python", "Python"), ("rust", "Rust")]
STYLES = [("friendly", "Friendly"), ("plain", "Plain")]


class Snippet(models.Model):
    created = models.DateTimeField(auto_now_add=True)
    title = models.CharField(max_length=100, blank=True, default="")
    code = models.TextField()
    linenos = models.BooleanField(default=False)
    language = models.CharField(choices=LANGUAGES, default="python", max_length=100)
    style = models.CharField(choices=STYLES, default="friendly", max_length=100)
    owner = models.ForeignKey("auth.User", related_name="snippets", on_delete=models.CASCADE)
    highlighted = models.TextField()

    class Meta:
        ordering = ["created", "pk"]

    def __str__(self) -> str:
        return self.title

    def save(self, *args, **kwargs):
        self.highlighted = format_html("<pre class={}>{}</pre>", self.language, self.code)
        super().save(*args, **kwargs)
