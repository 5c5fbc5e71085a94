from __future__ import annotations

import json

import pytest

from bird_realtime.edge.jsontext import JSONTextError, array_items, dump, object_members, parse


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{}", {}),
        (" { } ", {}),
        ('{"a":1.10,"b":12345678901234567890.5}', {"a": "1.10", "b": "12345678901234567890.5"}),
        (' {\n"a" : [ 1, {"x":"}"} ] ,\t"b":"\\u00e9" } ', {"a": '[ 1, {"x":"}"} ]', "b": '"\\u00e9"'}),
        ('{"a":1,"a":2}', {"a": "2"}),
        ('{"\\u0061":1e400}', {"a": "1e400"}),
    ],
)
def test_members_keep_their_text(text: str, members: dict[str, str]) -> None:
    assert object_members(text) == members


@pytest.mark.parametrize(
    ("text", "items"), [("[]", []), ("[ ]", []), (' [1.0 , "]",[2], {} ]', ["1.0", '"]"', "[2]", "{}"])]
)
def test_items_keep_their_text(text: str, items: list[str]) -> None:
    assert array_items(text) == items


@pytest.mark.parametrize("text", ["", "{", '{"a":}', "{'a':1}", '{"a":NaN}', "[1,]", '"\t"', "{} x", "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(JSONTextError):
        parse(text)


def test_the_kind_of_value_is_checked() -> None:
    with pytest.raises(JSONTextError, match="object"):
        object_members("[]")
    with pytest.raises(JSONTextError, match="array"):
        array_items("{}")


@pytest.mark.parametrize("value", ["é", "\ud800", {"a": [None, True, 1.5]}, "\u2028"])
def test_dump_can_always_be_sent(value: object) -> None:
    assert json.loads(dump(value).encode()) == value
