"""Names of people and shops, and the values that fill the gaps in the topics' sentences."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

VOCABULARY = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def gap_values(random: Random) -> dict[str, str]:
    """One value for every gap, to be kept for a whole conversation."""
    values = {name: random.choice(choices) for name, choices in VOCABULARY["gaps"].items()}
    values |= {
        "order": f"HB-{random.randint(100_000, 999_999)}",
        "invoice": f"INV-{random.randint(10_000, 99_999)}",
        "amount": f"{random.randint(5, 900)}.{random.choice(['00', '50', '90'])}",
        "count": str(random.randint(4, 90)),
        "request_id": f"req_{random.getrandbits(40):010x}",
        "version": f"{random.randint(3, 7)}.{random.randint(0, 20)}",
    }
    return values


def person(random: Random) -> tuple[str, str]:
    """A first and a last name."""
    return random.choice(VOCABULARY["first_names"]), random.choice(VOCABULARY["last_names"])


def company(random: Random) -> str:
    """The name of a shop."""
    return f"{random.choice(VOCABULARY['places'])} {random.choice(VOCABULARY['shops'])}"
