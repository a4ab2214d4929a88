from __future__ import annotations

import random
import threading

from django_mcp.forks import PerProcess, jitter
from django_mcp.store.ledger import ledger
from django_mcp.store.sessions.session_cache import memory
from tests.support.forking import in_child, needs_fork


def test_a_process_has_one_until_it_forgets_it():
    things = PerProcess(object)
    first = things()
    assert things() is first
    assert things.forget() is first
    assert things() is not first


def test_there_is_none_to_forget_before_one_is_asked_for():
    assert PerProcess(object).forget() is None


def test_threads_that_come_together_get_the_same():
    together = threading.Barrier(8)

    def make() -> object:
        together.wait(10)
        return object()

    things, found = PerProcess(make), []
    threads = [threading.Thread(target=lambda: found.append(things())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


@needs_fork
def test_a_fork_gets_its_own_and_its_parent_keeps_what_it_has():
    for things in (PerProcess(object), ledger, memory):
        mine = things()
        assert in_child(lambda things=things, mine=mine: things() is not mine) == 0
        assert things() is mine


def test_no_site_that_has_seeded_pythons_numbers_gets_others_nor_do_forks_share_theirs():
    random.seed(1)
    seeded = [random.random() for _ in range(3)]
    random.seed(1)
    again = []
    for _ in range(3):
        assert 0 <= jitter(0.5) <= 0.5
        again.append(random.random())
    assert again == seeded
    random.seed(1)
    mine = jitter(1000)
    random.seed(1)
    assert jitter(1000) != mine
