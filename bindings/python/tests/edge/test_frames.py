from __future__ import annotations

import pytest

from bird_realtime.edge.frames import Frame, Request, RequestError, decode, encode, error_frame


@pytest.mark.parametrize(
    ("frame", "double", "plain"),
    [
        (Frame("bird:pong"), b'{"event":"bird:pong"}', b'{"event":"bird:pong"}'),
        (
            Frame("x", "orders", '{"a":1.10}'),
            b'{"event":"x","channel":"orders","data":"{\\"a\\":1.10}"}',
            b'{"event":"x","channel":"orders","data":{"a":1.10}}',
        ),
        (
            Frame("é", "orders", '"ready"'),
            '{"event":"é","channel":"orders","data":"\\"ready\\""}'.encode(),
            '{"event":"é","channel":"orders","data":"ready"}'.encode(),
        ),
        (
            error_frame(RequestError("no", 4301)),
            b'{"event":"bird:error","data":{"code":4301,"message":"no"}}',
            b'{"event":"bird:error","data":{"code":4301,"message":"no"}}',
        ),
    ],
)
def test_encode(frame: Frame, double: bytes, plain: bytes) -> None:
    assert encode(frame, double_encoding=True) == double
    assert encode(frame, double_encoding=False) == plain


def test_decode_keeps_the_text_of_data() -> None:
    text = '{"event":"client-x","channel":"private-a","data":{"n":1.10},"more":1}'
    assert decode(text) == Request("client-x", "private-a", '{"n":1.10}')


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"event":1}', '{"event":null}', "{"])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        decode(text)


def test_data_that_is_no_object_is_refused() -> None:
    for data in (None, '"{}"', "[]", "1"):
        with pytest.raises(RequestError, match="Expected parameter data to be a hash"):
            Request("bird:subscribe", None, data).fields()
