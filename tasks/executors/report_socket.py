"""Reports of workers in other processes of this machine: datagrams to a socket in a folder of our own.

A sender never waits, and needs no connection that a killed worker could leave half open. A report that is
lost is followed by another.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from tasks.stage_progress import BOARD, Report

MAX_BYTES = 2048  # of one datagram on every system
_folder: tempfile.TemporaryDirectory[str] | None = None  # removed when this process ends
_sender: tuple[socket.socket, str] | None = None


@cache
def report_address() -> str:
    """Where workers of this process send reports."""
    global _folder
    _folder = tempfile.TemporaryDirectory(prefix="mudg-")  # which nobody else may enter
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = str(Path(_folder.name) / "reports")
    receiver.bind(address)
    threading.Thread(target=_receive, args=(receiver,), name="reports", daemon=True).start()
    return address


def _receive(receiver: socket.socket) -> None:
    while True:
        with suppress(OSError, ValueError, RecursionError):
            report = Report.from_json(json.loads(receiver.recv(MAX_BYTES)))
            if report is not None:
                BOARD.report(report)


def send_to(address: str) -> None:
    """Called in a worker: reports of this process go there from now on."""
    global _sender
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    _sender = sender, address


def send(report: Report) -> None:
    if _sender is None:
        BOARD.report(report)
        return
    sender, address = _sender
    with suppress(OSError):
        sender.sendto(json.dumps(report.to_json()).encode(), address)
