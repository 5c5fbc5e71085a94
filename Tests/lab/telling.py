"""What a program was told, as short text, and what must hold for it in every case."""

from __future__ import annotations

from script_client import Record

BLOCK_MAX = 4
# An error that is told is about the attempt or connection that ends right behind it.
TOLD = ("error", "state", "subscription_error", "signin_error", "decryption_error")
# States that a program passes through whatever happens.
USUAL = ("connecting", "initialized")
# On a machine with much to do, what is told comes late.
EARLY_SLACK_S, DELAY_SLACK_S = 1.0, 2.0  # and where times are not asked, later still


def words(record: Record) -> str | None:
    """`error STATUS FIELD`, `unavailable STATUS CLOSE_CODE`, ...; None for what is not about the fault."""
    kind = record["record"]
    if kind == "state":
        if record["current"] in USUAL:
            return None
        if record["current"] == "connected":
            return "connected"
        code = record["close_code"]
        return " ".join([record["current"], record["reason"], *([str(code)] if code else [])])
    if kind not in TOLD:
        return None
    parts = [kind, record["error"], record["field"]]
    if kind == "subscription_error":
        parts.append("will retry" if record["will_retry"] else "final")
    return " ".join(part for part in parts if part)


def told(records: list[Record]) -> tuple[str, ...]:
    """All of that in order; what comes again and again, as the same attempt does, is there once."""
    said = [text for text in map(words, records) if text]
    for length in range(1, BLOCK_MAX + 1):
        index = 0
        while index + 2 * length <= len(said):
            block = said[index : index + length]
            if said[index + length : index + 2 * length] == block:
                del said[index : index + length]
            else:
                index += 1
    return tuple(said)


def check(records: list[Record], slack_s: float = DELAY_SLACK_S) -> None:
    """Everything is told once: states follow each other, a loss is told once, an attempt has at most one error."""
    current = "initialized"
    errors: list[Record] = []
    lost = losses = 0
    for record in records:
        kind = record["record"]
        if kind == "connection_lost":
            lost += 1
        elif kind == "error":
            errors.append(record)
        elif kind == "state":
            assert record["previous"] == current, f"{record['previous']} is told after {current}"
            losses += current == "connected" and record["current"] == "unavailable"
            current = record["current"]
            assert len(errors) <= 1, f"several errors for one change to {current}: {errors}"
            if errors and current in ("unavailable", "failed"):
                assert errors[0]["error"] == record["reason"], (errors[0], record)
            errors = []
    assert lost == losses, f"{losses} connections were lost, and {lost} of them told"
    _check_delays(records, max(slack_s, DELAY_SLACK_S))


def _check_delays(records: list[Record], slack_s: float) -> None:
    """The next attempt begins when the program was told that it would, by the last word on it."""
    planned: tuple[float, float] | None = None
    for record in records:
        if record["record"] == "connecting_in" or (record["record"] == "state" and record["current"] == "unavailable"):
            planned = (record["at_s"], record["delay_ms"] / 1000)
        elif record["record"] == "state" and record["current"] == "connecting" and planned:
            told_at_s, delay_s = planned
            late_s = record["at_s"] - told_at_s - delay_s
            assert -EARLY_SLACK_S < late_s < slack_s, f"an attempt {late_s:.1f} s after its time: {record}"
            planned = None
