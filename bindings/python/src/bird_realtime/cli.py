"""The command `bird-realtime`; `Command` says what a module with a subcommand offers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Protocol

from .edge import command as edge


class Command(Protocol):
    """What a subcommand module offers."""

    SUMMARY: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options of the subcommand."""

    def run(self, options: argparse.Namespace) -> int:
        """Runs it; the exit code."""


COMMANDS: dict[str, Command] = {"edge": edge}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="bird-realtime", description="Tools for Bird Realtime.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        command.configure(subparser)
        subparser.set_defaults(run=command.run, parser=subparser)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code
