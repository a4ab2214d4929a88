"""People are told of each fault, in plain sentences, with the cure."""

from __future__ import annotations

import pytest

from django_mcp.doctor.findings import Level

from . import faults_issuer, faults_protocol, faults_resource, faults_transport
from .conftest import Healthy, look, options_for
from .plants import Fault
from .site import Site, served

pytestmark = pytest.mark.slow

FAULTS = [
    *faults_transport.FAULTS,
    *faults_resource.FAULTS,
    *faults_issuer.FAULTS,
    *faults_protocol.FAULTS,
]


@pytest.mark.parametrize("guarded", [False, True], ids=["open", "guarded"])
def test_where_nothing_is_wrong_nothing_is_said_to_be(healthy: Healthy, guarded: bool):
    report = healthy(guarded)
    wrong = [each for each in report.findings if each.level in (Level.WARNING, Level.BROKEN)]
    assert wrong == []
    assert {section.title for section in report.sections} >= {"Endpoint", "Protocol", "Tools"}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_found_and_named(fault: Fault, healthy: Healthy):
    assert not any(fault.says in each.message for each in healthy(fault.guarded).findings)
    with served(Site(guarded=fault.guarded)) as site:
        fault.plant(site)
        report = look(site, options=options_for(site, timeout=1.5))

    found = [each for each in report.findings if each.name == fault.name]
    assert found, [(each.name, each.message) for each in report.findings]
    assert any(fault.says in each.message for each in found), found
    assert {each.level for each in found} == {fault.level}
    if fault.level in (Level.WARNING, Level.BROKEN):
        assert all(each.cure.endswith((".", '"', "]")) for each in found)


def test_every_fault_has_a_name_of_its_own():
    assert len({fault.id for fault in FAULTS}) == len(FAULTS)
