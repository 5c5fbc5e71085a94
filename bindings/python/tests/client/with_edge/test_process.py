"""Programs of their own process: Ctrl-C, exits, forks and forgotten clients."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S

SOURCE = Path(__file__).parents[3] / "src"

# Ctrl-C has half a second; the rest is for the machine to come round to it.
INTERRUPT_S = 5.0

PRELUDE = """
import faulthandler, gc, os, signal, sys, threading, time, warnings
faulthandler.enable()
from bird_realtime import *
key, host, auth, member_auth = sys.argv[1:]
def client(**options):
    endpoints = dict(auth_endpoint=auth, member_auth_endpoint=member_auth)
    return BirdRealtime(key, ws_host=host, allow_insecure=True, **endpoints, **options)
def say(*words):
    print(*words, flush=True)
"""

Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(edge: EdgeServer) -> Iterator[Start]:
    """Starts Python programs; those that still run after the test are killed."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        arguments = [edge.app_key, edge.ws_host, edge.auth_endpoint, edge.member_auth_endpoint]
        program = subprocess.Popen(
            [sys.executable, "-W", "error::ResourceWarning", "-c", PRELUDE + textwrap.dedent(code), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        started.append(program)
        return program

    yield run
    for program in started:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
        program.communicate()


def wait_for_line(program: subprocess.Popen[str], expected: str) -> None:
    assert program.stdout is not None
    line = program.stdout.readline().rstrip("\n")
    if line != expected:
        program.kill()
        pytest.fail(f"{line!r} instead of {expected!r}: {program.communicate()[1]}")


def finished(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = program.communicate(timeout=GENEROUS_S)
    return program.returncode, output, errors


@pytest.mark.parametrize(
    "wait",
    [
        "bird.run_forever()",
        "bird.wait_until('disconnected')",
        "bird.signin()",
        "next(bird.events())",
        "next(iter(bird.subscribe('orders')))",
        "bird.subscribe('private-a').wait_subscribed()",
        "bird.disconnect(); bird.wait_until('connected')",
    ],
)
@pytest.mark.parametrize("thread", [True, False])
def test_interrupt(edge: EdgeServer, start: Start, wait: str, thread: bool) -> None:
    edge.withhold("signin")
    edge.fail_http("auth", hang=True)
    program = start(
        f"""
        with client(thread={thread}) as bird:
            bird.wait_until("connected")
            say("waiting")
            {wait}
        """
    )
    wait_for_line(program, "waiting")
    time.sleep(0.1)  # not needed for the result: it makes it likely that the program is inside the wait
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    code, _, errors = finished(program)
    assert time.monotonic() - began < INTERRUPT_S
    assert code == -signal.SIGINT, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    edge.wait_for_connections(0)


@pytest.mark.parametrize(
    "wait",
    [
        "bird.run_forever()",
        "list(bird.events())",
        "list(orders)",
        "bird.wait_until('failed')",
        "bird.signin()",
        "bird.subscribe('private-a').wait_subscribed()",
        "[orders.state for _ in iter(int, 1)]",
        "[bird.subscribe('more').unsubscribe() for _ in iter(int, 1)]",
    ],
)
@pytest.mark.parametrize("thread", [True, False])
def test_sigterm_closes(edge: EdgeServer, start: Start, wait: str, thread: bool) -> None:
    """As a service ends: its signal handler closes the client, whatever the main thread is in the middle of."""
    edge.withhold("signin")
    edge.fail_http("auth", hang=True)
    program = start(
        f"""
        bird = client(thread={thread})
        orders = bird.subscribe("orders")
        bird.wait_until("connected")
        def stop(*_):
            began = time.monotonic()
            bird.close(timeout=60)
            say(time.monotonic() - began < {INTERRUPT_S})
            os._exit(0)
        signal.signal(signal.SIGTERM, stop)
        say("waiting")
        {wait}
        """
    )
    wait_for_line(program, "waiting")
    time.sleep(0.1)  # not needed for the result: it makes it likely that the program is inside the wait
    program.send_signal(signal.SIGTERM)
    code, output, errors = finished(program)
    assert (code, output, errors) == (0, "True\n", "")
    edge.wait_for_connections(0)


@pytest.mark.parametrize("thread", [True, False])
def test_interrupt_while_reconnecting(edge: EdgeServer, start: Start, thread: bool) -> None:
    program = start(
        f"""
        with client(thread={thread}, backoff_base_ms=60_000, backoff_max_ms=60_000) as bird:
            bird.wait_until("connected")
            say("waiting")
            bird.wait_until("unavailable")
            say("unavailable")
            bird.run_forever()
        """
    )
    wait_for_line(program, "waiting")
    edge.stop()
    wait_for_line(program, "unavailable")
    program.send_signal(signal.SIGINT)
    assert finished(program)[0] == -signal.SIGINT


def test_interrupt_in_a_handler(edge: EdgeServer, start: Start) -> None:
    program = start(
        """
        with client(thread=False) as bird:
            @bird.subscribe("orders").bind("tick")
            def slow(event):
                say("in the handler")
                while True:
                    # In short pieces: CPython may miss a signal just before a sleep.
                    time.sleep(0.01)
            bird.run_forever()
        """
    )
    edge.wait_for_subscription("orders")
    edge.publish("tick", ["orders"])
    wait_for_line(program, "in the handler")
    program.send_signal(signal.SIGINT)
    code, _, errors = finished(program)
    assert code == -signal.SIGINT, errors
    assert "A handler failed" not in errors, "an interrupt is no error of the handler"


ENDINGS = {
    "main returns": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "an exception": ("raise LookupError", 1),
    "sys.exit in a thread": ("thread = threading.Thread(target=sys.exit); thread.start(); thread.join()", 0),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("thread", [True, False])
def test_exit_without_close(edge: EdgeServer, start: Start, ending: str, thread: bool) -> None:
    """While events keep coming."""
    statement, code = ENDINGS[ending]
    program = start(
        f"""
        bird = client(thread={thread})
        orders = bird.subscribe("orders").bind("tick", lambda event: event.data)
        orders.wait_subscribed()
        next(orders.events())
        say("ready")
        {statement}
        """
    )
    edge.wait_for_subscription("orders")
    number = 0
    while program.poll() is None:
        edge.publish("tick", ["orders"], number)
        number += 1
    got, output, errors = finished(program)
    assert (got, output) == (code, "ready\n"), errors
    assert "ResourceWarning" not in errors
    edge.wait_for_connections(0)


def test_exit_with_a_handler_that_never_returns(edge: EdgeServer, start: Start) -> None:
    program = start(
        """
        bird = client()
        running = threading.Event()
        def endless(event):
            running.set()
            threading.Event().wait()
        bird.subscribe("orders").bind("tick", endless)
        running.wait()
        """
    )
    edge.wait_for_subscription("orders")
    edge.publish("tick", ["orders"])
    code, _, errors = finished(program)
    assert code == 0, errors


def test_a_forgotten_client(edge: EdgeServer, start: Start) -> None:
    program = start(
        """
        warnings.simplefilter("always")
        bird = client()
        bird.subscribe("orders").bind("tick", print)
        bird.wait_until("connected")
        del bird
        gc.collect()
        say("collected")
        deadline = time.monotonic() + 20
        while threading.active_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        say(threading.active_count())
        sys.stdin.readline()
        """
    )
    wait_for_line(program, "collected")
    wait_for_line(program, "1")
    edge.wait_for_connections(0)
    code, _, errors = finished(program)
    assert code == 0
    assert "ResourceWarning: unclosed BirdRealtime client of app pk_local" in errors


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize(
    "child_ends", ["sys.exit()", "os._exit(0)", "bird.close(); sys.exit()", "del bird; gc.collect()"]
)
def test_fork(edge: EdgeServer, start: Start, thread: bool, child_ends: str) -> None:
    program = start(
        f"""
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
        bird = client(thread={thread})
        orders = bird.subscribe("orders")
        orders.wait_subscribed()
        bird.signin()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            for call in (
                bird.connect, bird.disconnect, bird.flush, bird.signin, bird.statistics, bird.run_forever,
                orders.unsubscribe, lambda: bird.subscribe("x"), lambda: orders.trigger("client-x"),
                lambda: bird.connection.state, lambda: bird.connection.connection_id, lambda: bird.member_id,
                lambda: orders.state, lambda: bird.wait_until("connected"), lambda: next(iter(orders)),
                lambda: orders.bind("x", print), lambda: orders.wait_subscribed(), orders.unbind, bird.unbind,
                bird.connection.unbind, lambda: bird.bind_global(print), lambda: bird.channels,
            ):
                try:
                    call()
                    say("no error from", call)
                except ForkedClient:
                    pass
            with client() as own:
                own.subscribe("child").wait_subscribed(20)
            say("the child is done")
            del call
            {child_ends}
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say("the child ended with", status)
        say("waiting")
        say(next(orders.events(20)).data)
        bird.close()
        """
    )
    wait_for_line(program, "the child is done")
    wait_for_line(program, "the child ended with 0")
    wait_for_line(program, "waiting")
    while program.poll() is None:
        edge.publish("tick", ["orders"], 7)
    code, output, errors = finished(program)
    assert (code, output) == (0, "7\n"), errors
    assert errors == ""
    assert len(edge.journal("opened")) == 2, "the parent's connection lived on"


def test_fork_in_a_handler(edge: EdgeServer, start: Start) -> None:
    program = start(
        """
        warnings.simplefilter("ignore", DeprecationWarning)
        bird = client()
        done = threading.Event()
        def handler(event):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                return  # the thread of the handler is the child's only one
            say("the child ended with", os.waitpid(child, 0)[1])
            done.set()
        bird.subscribe("orders").bind("tick", handler)
        done.wait(20)
        bird.close()
        """
    )
    edge.wait_for_subscription("orders")
    edge.publish("tick", ["orders"])
    wait_for_line(program, "the child ended with 0")
    code, _, errors = finished(program)
    assert (code, errors) == (0, "")


def test_multiprocessing_with_fork(edge: EdgeServer, start: Start) -> None:
    program = start(
        """
        import multiprocessing
        warnings.simplefilter("ignore", DeprecationWarning)
        bird = client()
        bird.wait_until("connected")
        def work(queue):
            try:
                bird.connect()
            except ForkedClient as error:
                queue.put(str(error))
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        text = queue.get(timeout=20)
        process.join(20)
        say(process.exitcode, "after the fork" in text, bird.connection.state)
        bird.close()
        """
    )
    wait_for_line(program, "0 True connected")
    assert finished(program)[::2] == (0, "")
