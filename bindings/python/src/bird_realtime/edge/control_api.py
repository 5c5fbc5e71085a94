"""The test controls over HTTP: `POST /_edge/<control>` with a JSON object of its arguments.

`GET /_edge/` lists the controls with their arguments. An argument of bytes travels as base64. The reply is
`{"result": …}`, or a status of 400 or more and `{"error": …}`. Controls that only look take a GET as well, with their
arguments in the query. Example:

    curl -H 'content-type: application/json' -d '{"code": 4009, "reason": "bye"}' \
        http://127.0.0.1:PORT/_edge/close_connections
"""

from __future__ import annotations

import base64
import binascii
import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from .config import ConfigError
from .controls import ControlError, Controls
from .jsontext import JSONTextError, parse
from .replies import Call, Reply, json_reply


class ControlApi:
    """Calls controls by name. Runs on the edge's loop, as `controls` must."""

    def __init__(self, controls: Controls) -> None:
        self._controls = {
            name: method
            for name, method in inspect.getmembers(controls, callable)
            if getattr(method, "is_control", False)
        }

    def answer(self, call: Call) -> Reply:
        name = "/".join(call.path[1:])
        if not name and call.method in ("GET", "POST"):
            return json_reply(200, {"result": {key: _describe(method) for key, method in self._controls.items()}})
        method = self._controls.get(name)
        if method is None:
            return json_reply(404, {"error": f"no control {name}; GET /_edge/ lists them"})
        only_looks = getattr(method, "only_looks", False)
        if call.method != "POST" and not (only_looks and call.method == "GET"):
            allowed = "GET, POST" if only_looks else "POST"
            return json_reply(405, {"error": f"{name} takes {allowed}; {_how_to_call(name)}"}, {"allow": allowed})
        if call.method == "POST" and not call.is_json:
            return json_reply(415, {"error": f"the body must say that it is JSON; {_how_to_call(name)}"})
        try:
            given = _parsed(call.body) if call.method == "POST" else dict(call.query)
            return json_reply(200, {"result": _plain(method(**_arguments(method, given)))})
        except (ConfigError, ControlError) as error:
            return json_reply(400, {"error": str(error)})


def _describe(method: Any) -> dict[str, Any]:
    summary = (inspect.getdoc(method) or "").partition("\n")[0]
    parameters = {
        name: str(parameter.annotation) + ("" if parameter.default is parameter.empty else f" = {parameter.default!r}")
        for name, parameter in inspect.signature(method).parameters.items()
    }
    return {"summary": summary, "arguments": parameters}


def _how_to_call(name: str) -> str:
    return (
        f"send POST /_edge/{name} with the header content-type: application/json and a JSON object of arguments, "
        "such as {}"
    )


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        given = parse(body.decode()) if body else {}
    except (JSONTextError, UnicodeDecodeError) as error:
        raise ControlError(f"body: {error}") from None
    if not isinstance(given, dict):
        raise ControlError("body: expected a JSON object of arguments")
    return given


def _arguments(method: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments given, checked against the annotations of the control."""
    hints = get_type_hints(method)
    parameters = inspect.signature(method).parameters
    for name in given:
        if name not in parameters:
            raise ControlError(f"{name}: no such argument; there are {', '.join(parameters) or 'none'}")
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in given:
            raise ControlError(f"{name}: this argument is needed")
    return {name: _convert(name, hints[name], value) for name, value in given.items()}


def _convert(name: str, hint: Any, value: Any) -> Any:
    if hint is object:
        return value
    if get_origin(hint) in (Union, types.UnionType):
        if value is None:
            return None
        hint = next(choice for choice in get_args(hint) if choice is not type(None))
    origin = get_origin(hint)
    if origin is Sequence and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    if origin is Mapping and isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return value
    if hint is bytes and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise ControlError(f"{name}: expected base64") from None
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (str, int, float, bool) and type(value) is hint:
        return value
    raise ControlError(f"{name}: expected {getattr(hint, '__name__', hint)}")


def _plain(value: Any) -> Any:
    """`value` as what JSON can say."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
