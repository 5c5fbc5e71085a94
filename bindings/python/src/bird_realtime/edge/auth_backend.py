"""The customer's backend in a test: it decides who may subscribe and sign in (Bird protocol §9, §11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import signing
from .config import EdgeConfig
from .hub import Hub
from .jsontext import JSONTextError, dump, parse
from .names import Kind, kind_of, member_id_problem
from .replies import Call, Reply, json_reply

DEFAULT_MEMBER_ID = "m_1"


class AuthBackend:
    """Signs for the member named by `Authorization: Bearer <member_id>`, or for the default member.

    With `members` given, other members are refused with 403; so is a channel in `denied_channels`.
    """

    def __init__(self, config: EdgeConfig, hub: Hub) -> None:
        self.members: dict[str, Any] = dict(config.members)
        self.default_member_id = next(iter(self.members), DEFAULT_MEMBER_ID)
        self.watchlists: dict[str, Sequence[str]] = dict(config.watchlists)
        self.denied_channels: set[str] = set()
        self.encryption_master_key = config.encryption_master_key
        self._app_key = config.app_key
        self._app_secret = config.app_secret
        self._hub = hub

    def authorize_channel(self, call: Call, *, wrong_signature: bool) -> Reply:
        """Answers `POST /bird/auth`."""
        return self._answer(call, ("connection_id", "channel_name"), wrong_signature)

    def authorize_member(self, call: Call, *, wrong_signature: bool) -> Reply:
        """Answers `POST /bird/auth/member`."""
        return self._answer(call, ("connection_id",), wrong_signature)

    def _answer(self, call: Call, needed: tuple[str, ...], wrong_signature: bool) -> Reply:
        if call.method != "POST":
            return json_reply(405, {"error": "this endpoint answers POST"}, {"allow": "POST"})
        if not call.is_json:
            return json_reply(415, {"error": "this endpoint needs the header content-type: application/json"})
        fields = _fields(call.body)
        missing = [key for key in needed if not isinstance(fields.get(key), str) or not fields[key]]
        if missing:
            return json_reply(400, {"error": f"the JSON body needs {' and '.join(missing)} as a string"})
        member_id = call.bearer() or self.default_member_id
        if member_id_problem(member_id) or (self.members and member_id not in self.members):
            return json_reply(403, {"error": f"{member_id} is not a member"})
        channel = fields.get("channel_name") if "channel_name" in needed else None
        if channel in self.denied_channels:
            return json_reply(403, {"error": f"{member_id} may not subscribe to {channel}"})
        answer = (
            self._member(fields["connection_id"], member_id)
            if channel is None
            else self._channel(fields["connection_id"], channel, member_id)
        )
        if wrong_signature:
            answer["auth"] = f"{self._app_key}:{'0' * 64}"
        return json_reply(200, answer)

    def _channel(self, connection_id: str, channel: str, member_id: str) -> dict[str, str]:
        kind = kind_of(channel)
        member_data = self._member_data(member_id) if kind is Kind.PRESENCE else None
        answer = {"auth": self._sign(signing.channel_string(connection_id, channel, member_data))}
        if member_data is not None:
            answer["member_data"] = member_data
        if kind is Kind.ENCRYPTED:
            answer["shared_secret"] = signing.shared_secret(channel, self.encryption_master_key)
        return answer

    def _member(self, connection_id: str, member_id: str) -> dict[str, str]:
        member_data = self._member_data(member_id, self.watchlists.get(member_id))
        return {
            "auth": self._sign(signing.signin_string(connection_id, member_data)),
            "member_data": member_data,
        }

    def _member_data(self, member_id: str, watchlist: Sequence[str] | None = None) -> str:
        member = {"member_id": member_id, "member_info": self.members.get(member_id, {"name": member_id})}
        return dump(member if watchlist is None else {**member, "watchlist": list(watchlist)})

    def _sign(self, signed: str) -> str:
        return signing.auth_string(self._app_key, self._app_secret, signed)


def _fields(body: bytes) -> Mapping[str, Any]:
    try:
        fields = parse(body.decode())
    except (JSONTextError, UnicodeDecodeError):
        return {}
    return fields if isinstance(fields, dict) else {}
