from __future__ import annotations

import pytest

from bird_realtime.edge.names import Kind, channel_problem, kind_of, member_id_problem, published_event_problem


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders", Kind.PUBLIC),
        ("private", Kind.PUBLIC),
        ("private-a", Kind.PRIVATE),
        ("private-encrypted-a", Kind.ENCRYPTED),
        ("private-encrypted", Kind.PRIVATE),
        ("presence-a", Kind.PRESENCE),
        ("presence-cache-a", Kind.PRESENCE),
        ("#server-to-user-m_7", Kind.MEMBER),
    ],
)
def test_the_prefix_decides_the_kind(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


def test_channel_names() -> None:
    assert channel_problem("a" * 164) is None
    assert channel_problem("Az09_=@,.;-") is None
    for bad in ("", "a" * 165, "#server-to-user-m_7", "a b", "é", "a/b", "a\n"):
        assert channel_problem(bad), bad


def test_published_event_names() -> None:
    assert published_event_problem("e" * 200) is None
    assert published_event_problem("é bird:") is None
    for bad in ("", "e" * 201, "bird:x", "bird_internal:x", "client-x"):
        assert published_event_problem(bad), bad


def test_member_ids() -> None:
    assert member_id_problem("a" * 128) is None
    assert member_id_problem("A0._~!$&'()*+,;=:@-") is None
    for bad in ("", "a" * 129, "a/b", "a?b", "a#b", "a%b", "a b", "é"):
        assert member_id_problem(bad), bad
