"""What people fill in, be it on a page or in front of an assistant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from example_project.support.models import Refund

if TYPE_CHECKING:
    from decimal import Decimal

    FormOfRefund = forms.ModelForm[Refund]
else:
    # Only the type stubs know the class as generic.
    FormOfRefund = forms.ModelForm


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
