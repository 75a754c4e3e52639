"""No control character of data reaches a terminal, whatever a command says and however it says it."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pytest
from rich.console import Console

from mudg.cli import plan
from mudg.cli.progress import Terminal
from mudg_core.plan import probe
from mudg_core.visible import one_line, visible
from tasks.stage_progress import StageProgress

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31mred\u202eevil\u2066\x00\x08\r"
# What Rich itself sends: colours, the cursor, and a line that is written again.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[12]?[AK]|\r\n|\r")


def test_f86_everything_that_steers_a_terminal_is_written_out() -> None:
    every = "".join(map(chr, [*range(0x2100), 0xD800, 0xDCFF]))
    shown = visible(every)
    bad = [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    assert not set(map(chr, bad)) & set(shown) and visible(shown) == shown
    assert {"\t", "\n", "a", "ä", "文", "😀"} <= set(visible("\t\naä文😀"))
    assert one_line("a\n\x1bb\t") == r"a\n\x1bb\t"


def on_a_terminal(code: str, folder: Path) -> str:
    """What a program sends to its terminal, on both streams."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", "FORCE_COLOR": "1"}
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environ
    )
    os.close(theirs)
    data = b""
    try:
        while chunk := os.read(ours, 65536):
            data += chunk
    except OSError:  # the other side was closed
        pass
    program.wait(60)
    os.close(ours)
    return data.decode()


COMMANDS = {
    "usage": ["target", HOSTILE.replace("\0", "")],
    "missing spec": ["target", "run", HOSTILE.replace("\0", "")],
    "bad spec": ["target", "run", "bad.yaml"],
    "settings": ["settings", "--set", "index.cells=" + HOSTILE.replace("\0", "")],
    "shown settings": ["settings", "-s", "hostile.yaml"],
    "no folder": ["predict", "/" + HOSTILE.replace("\0", ""), "x.jpg"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_f86_no_command_hands_control_characters_on(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text('name: "\\x1b[2J\\x9b\\u202e"\n"\\x1b]0;x\\x07": 1\n')
    (tmp_path / "hostile.yaml").write_text('train: {prompt_tokens: "\\e[2J\\x9b\\u202eowned"}\n')
    code = f"import sys; sys.argv = ['mudg', *{arguments!r}]\nfrom mudg.cli import main; main()"
    check(on_a_terminal(code, tmp_path))


def test_f86_results_statuses_logs_and_tracebacks_are_clean(tmp_path: Path) -> None:
    code = (
        "from mudg.cli.terminal import guard_terminal; guard_terminal()\n"
        "import logging, sys, json; from mudg.cli.output import console, show, table_of\n"
        f"bad = {HOSTILE!r}\n"
        "show({}, table_of([(bad, bad)], ('caption', 'url')), False); show({'x': bad}, '', True)\n"
        "console.print(bad, markup=False); console.print(f'[green]{bad}')\n"
        "with console.status(bad): pass\n"
        "logging.basicConfig(); logging.getLogger('x').warning('%s', bad)\n"
        "print(bad); raise ValueError(bad)"
    )
    text = on_a_terminal(code, tmp_path)
    check(text)
    assert text.count("owned") >= 7 and json.dumps({"x": HOSTILE}) in text


def test_f86_links_of_data_are_not_sent(tmp_path: Path) -> None:
    code = (
        "from mudg.cli.terminal import guard_terminal; guard_terminal()\n"
        "from mudg.cli.output import console\n"
        "from rich.text import Text; from rich.style import Style\n"
        "address = 'https://evil.example/' + chr(27) + ']0;owned' + chr(7)\n"
        "console.print(Text('the words', Style(link=address, bold=True)))"
    )
    text = on_a_terminal(code, tmp_path)
    check(text)
    assert "the words" in text and "evil" not in text


MARKUP = "m/[/x]"
SAID_BY = {
    "corpus add": ["corpus", "add", MARKUP],
    "down": ["down", "--folder", MARKUP, "--wipe"],
}


@pytest.mark.parametrize("arguments", SAID_BY.values(), ids=SAID_BY)
def test_words_in_brackets_are_words(arguments: list[str], tmp_path: Path) -> None:
    """Rich would take them for its markup, and of what closes nothing it made a traceback."""
    code = f"import sys; sys.argv = ['mudg', *{arguments!r}]\nfrom mudg.cli import main; main()"
    text = on_a_terminal(code, tmp_path)
    assert "MarkupError" not in text and "Traceback" not in text


def test_a_model_that_is_tried_out_is_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: object) -> NoReturn:
        raise TimeoutError

    monkeypatch.setattr(probe, "embed_rate", reached)
    work: Any = mock.MagicMock()
    work.encoder.image_size = work.settings.corpus.image_size = 32
    work.settings.encode.model = MARKUP
    with pytest.raises(TimeoutError):
        plan._tried(mock.MagicMock(), work, mock.MagicMock())


def test_the_parts_of_a_stage_are_words_too() -> None:
    said = io.StringIO()
    with Terminal(Console(file=said, width=200))(StageProgress("embed", MARKUP, 3, 0)):
        pass
    assert f"({MARKUP})" in said.getvalue()


def check(text: str) -> None:
    assert len(text) > 10
    left = OURS.sub("", text)
    assert [char for char in left if visible(char) != char] == []
