from __future__ import annotations

import pytest

from bird_realtime.edge import signing

KEY, SECRET, CONNECTION = "pk_demo_7Qx2", "sk_demo_9fZt-not-a-real-secret", "4242.1357"
NOOR = '{"member_id":"m_7","member_info":{"name":"Noor"}}'
NOOR_WATCHING = '{"member_id":"m_7","member_info":{"name":"Noor"},"watchlist":["m_8","m_9"]}'

VECTORS = {
    "private": (
        signing.channel_string(CONNECTION, "private-ledger"),
        "e776d1bd87d96f7990cbdf5578d6d1d647c50f917ea2a72fdb1c6d7efae652ef",
    ),
    "presence": (
        signing.channel_string(CONNECTION, "presence-lobby", NOOR),
        "9e0e5fa10fdd29f24082baa1273b02a05898c993cf7f99bfdab87ced11f52fbf",
    ),
    "encrypted": (
        signing.channel_string(CONNECTION, "private-encrypted-vault"),
        "f55b5feb1fbf78de6b88b4d442c5cd794bd8938caf7a281e928da84d0c87de8d",
    ),
    "signin": (
        signing.signin_string(CONNECTION, NOOR_WATCHING),
        "30677809309d9b5fc1832cf00f608af39f699511905a74fc9863164d070612f5",
    ),
}


@pytest.mark.parametrize(("signed", "digest"), VECTORS.values(), ids=VECTORS)
def test_vectors(signed: str, digest: str) -> None:
    assert signing.auth_string(KEY, SECRET, signed) == f"{KEY}:{digest}"
    assert signing.is_valid(f"{KEY}:{digest}", signed, {KEY: SECRET})


@pytest.mark.parametrize(
    "auth",
    [
        "",
        KEY,
        f"{KEY}:",
        f"{KEY}:{VECTORS['presence'][1]}",
        f"{KEY}:{VECTORS['private'][1].upper()}",
        f"{KEY}::{VECTORS['private'][1]}",
        f"other:{VECTORS['private'][1]}",
        f"{KEY}:\ud800",
        f"{KEY}:é",
    ],
)
def test_other_signatures_are_refused(auth: str) -> None:
    assert not signing.is_valid(auth, VECTORS["private"][0], {KEY: SECRET})


def test_any_live_key_signs_with_its_own_secret() -> None:
    keys = {KEY: SECRET, "second": "other"}
    assert signing.is_valid(signing.auth_string("second", "other", "x"), "x", keys)
    assert not signing.is_valid(signing.auth_string("second", SECRET, "x"), "x", keys)


@pytest.mark.parametrize(
    ("channel", "secret"),
    [
        ("private-encrypted-vault", "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc="),
        ("private-encrypted-cache-vault", "I1qRd7K02IuwO4ry62hz+N90H4dWRix9T6tcfEGHAus="),
    ],
)
def test_shared_secret_vectors(channel: str, secret: str) -> None:
    assert signing.shared_secret(channel, bytes(range(32))) == secret
