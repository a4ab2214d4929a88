"""A sweep whose moments have come: its pauses are over as soon as a test wants that."""

from __future__ import annotations

from django_mcp.store.sweep import Sweep

AGES = 3600.0


def begin_round(sweep: Sweep) -> None:
    """Begin a round, if this process may, and take no step of it yet."""
    sweep._round, sweep._step = float("-inf"), float("inf")
    sweep.note_activity()
    sweep.tick()


def take_step(sweep: Sweep) -> None:
    """Take a step, if there is one left in the round."""
    sweep._step = float("-inf")
    for turn in sweep._turns:
        turn.due -= AGES  # their order stays
    sweep.tick()


def sweep_up(sweep: Sweep) -> None:
    """Finish the round that is under way, and others for what became free in it."""
    for _ in range(3):
        begin_round(sweep)
        while sweep:
            take_step(sweep)
