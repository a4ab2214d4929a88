"""What people fill in, be it on a page or in front of an assistant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django import forms

from example_project.support.models import Article, Customer, Refund, Ticket

if TYPE_CHECKING:
    from decimal import Decimal

    FormOfArticle = forms.ModelForm[Article]
    FormOfCustomer = forms.ModelForm[Customer]
    FormOfRefund = forms.ModelForm[Refund]
else:
    # Only the type stubs know the class as generic.
    FormOfArticle = FormOfCustomer = FormOfRefund = forms.ModelForm


class CustomerForm(FormOfCustomer):
    """What agents write about a customer; whether he may log in is not for them to say."""

    class Meta:
        model = Customer
        fields = ["name", "email", "company"]


class ArticleForm(FormOfArticle):
    """Write an article of the knowledge base, in Markdown. Show it to your user before."""

    class Meta:
        model = Article
        fields = ["slug", "title", "body", "tags"]
        labels = {"slug": "The name in its address, such as returning-a-parcel"}

    def clean_body(self) -> str:
        body: str = self.cleaned_data["body"]
        if "@" in body:
            raise forms.ValidationError("No addresses, please: everybody reads this.")
        return body


class RefundForm(FormOfRefund):
    """How much to refund, and why."""

    class Meta:
        model = Refund
        fields = ["amount", "reason"]

    def __init__(self, *args: Any, refundable: Decimal, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.refundable = refundable

    def clean_amount(self) -> Decimal:
        amount: Decimal = self.cleaned_data["amount"]
        if not 0 < amount <= self.refundable:
            raise forms.ValidationError(f"Between 0.01 and {self.refundable} EUR, please.")
        return amount


class ReplyForm(forms.Form):
    """What somebody writes to a ticket."""

    body = forms.CharField(
        label="Message",
        max_length=10_000,
        widget=forms.Textarea({"rows": 4}),
        help_text="It reaches the customer at once.",
    )
    internal = forms.BooleanField(
        label="Internal note", required=False, help_text="Only agents read it."
    )

    def __init__(self, *args: Any, ticket: Ticket, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ticket = ticket

    def clean_body(self) -> str:
        body: str = self.cleaned_data["body"]
        if blank := re.search(r"\[[^\]\n]*\]", body):
            raise forms.ValidationError(f"Fill in {blank[0]} before you send it.")
        return body

    def clean_internal(self) -> bool:
        internal: bool = self.cleaned_data["internal"]
        if internal and self.ticket.status == Ticket.Status.SOLVED:
            raise forms.ValidationError("Nobody reads notes about a solved ticket.")
        return internal
