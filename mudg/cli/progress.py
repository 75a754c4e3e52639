"""Stages as lines in the terminal: those at work with how far they are, and a tick with its time for each
that is done. The time is that in which a stage was at work, not that in which it was waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

from mudg.cli.output import console as on_terminal
from mudg.execution import session, uses_prefect
from mudg_core.settings import Settings
from mudg_core.stage_names import stage_title
from tasks.run import WATCHER
from tasks.stage_progress import BOARD, Board, StageProgress


class Terminal:
    """A watcher that writes to standard error, so that standard output stays for results."""

    def __init__(self, console: Console, board: Board = BOARD) -> None:
        self.console, self.board, self.spinner = console, board, Spinner("dots")

    @contextmanager
    def __call__(self, progress: StageProgress) -> Iterator[None]:
        with Live(
            console=self.console,
            get_renderable=lambda: self._at_work(progress),
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
        ):
            yield
        many = f" × {progress.artifacts}" if progress.artifacts > 1 else ""
        how = "cached" if progress.cached == progress.artifacts else f"{progress.seconds:.1f} s"
        if 0 < progress.cached < progress.artifacts:
            how += f", {progress.cached} cached"
        self.console.print(f"[green]✓[/] {_title(progress)}{many} [dim]{how}[/]", highlight=False)

    def _at_work(self, awaited: StageProgress) -> RenderableType:
        """Lines of all stages at work; of the one that is waited for, if none is."""
        lines = [f"{_title(one)} [dim]{escape(one.describe())}[/]" for one in self.board.at_work()]
        self.spinner.update(text="\n".join(lines) or f"{_title(awaited)} …")
        return self.spinner


def _title(progress: StageProgress) -> str:
    title = stage_title(progress.stage)
    return f"{title} ({escape(progress.part)})" if progress.part else title


@contextmanager
def watched(settings: Settings) -> Iterator[Settings]:
    """A session whose stages are shown in the terminal."""
    starting = on_terminal.status("starting Prefect and Dask …") if uses_prefect(settings) else nullcontext()
    with ExitStack() as stack:
        with starting:
            ready = stack.enter_context(session(settings))
        token = WATCHER.set(Terminal(on_terminal))
        stack.callback(WATCHER.reset, token)
        yield ready
