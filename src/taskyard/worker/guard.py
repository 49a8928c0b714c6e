"""The guard: a small process between a worker and the commands that it runs, so that no command outlives its worker.

It is started as a program of its own. Its two descriptors are a stream socket to the worker, and the lock that shows others
whether the worker lives. The worker sends a command; the guard runs it in a session of its own and keeps its output.
Once every process of the command has exited, the guard sends how it ended. When the worker dies the socket closes: the
guard stops the command, and only then exits and releases the lock. So no other worker gets the task while a process of
the old attempt is left.

Messages are JSON, a line each. To the guard: `{"run": {...}}`, `{"stop": seconds}` (its grace at most). From it:
`{"ended": {...}}`. The guard imports nothing of Taskyard, because it has to start fast.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATIENCE = 1.0  # seconds between TERM and KILL without a given grace: leftovers, and commands of a dead worker
STDOUT_TAIL = (1 << 20) + (1 << 16)  # it may hold the result, and a result may have a mebibyte
STDERR_TAIL = 1 << 14
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Only the worker's end may end a guard, and Ctrl-Z must not stop it: it has to notice a worker that stands still.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_CHUNK = 1 << 16
_CHUNKS = 64  # read at a time: a pipe holds no more, and a stream that never pauses must not block the guard


class Output:
    """One stream of a command: its beginning and its end are kept in a file, its end also in memory."""

    def __init__(self, descriptor: int, path: str | None, most: int, tail: int) -> None:
        self.descriptor = descriptor
        self._path = path
        self._room = most // 2
        self._last = most - most // 2
        self._tail = max(tail, self._last)
        self._told = tail
        self._kept = bytearray()
        self._file: int | None = None
        self._beyond = 0
        self._taken = 0
        os.set_blocking(descriptor, False)

    def pump(self) -> bool:
        """Read what is available; return False at the end of the stream."""
        for _ in range(_CHUNKS):
            try:
                chunk = os.read(self.descriptor, _CHUNK)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not chunk:
                return False
            self._take(chunk)
        return True

    def _take(self, chunk: bytes) -> None:
        head = chunk[: self._room]
        self._room -= len(head)
        self._beyond += len(chunk) - len(head)
        self._taken += len(chunk)
        if head:
            self._write(head)
        self._kept += chunk
        if len(self._kept) > 2 * self._tail:
            del self._kept[: -self._tail]

    def _write(self, content: bytes | bytearray) -> None:
        if self._path is None:
            return
        try:
            if self._file is None:
                # Not blocking: the command may have put a pipe there that has no reader.
                how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
                self._file = os.open(self._path, how, 0o666)
            os.write(self._file, content)
        except OSError:
            self._path = None  # the disk is full, or the yard unreachable: the command goes on, its log ends here

    @property
    def is_cut(self) -> bool:
        """Whether the stream was longer than the tail that `close` returns."""
        return self._taken > self._told

    def close(self) -> str:
        """Finish the file; return the end of the stream."""
        self.pump()
        os.close(self.descriptor)
        if self._beyond:
            rest = self._kept[-min(self._beyond, self._last) :]
            if self._beyond > len(rest):
                self._write(b"\n[%d bytes left out]\n" % (self._beyond - len(rest)))
            self._write(rest)
        if self._file is not None:
            os.close(self._file)
        return self._kept[-self._told :].decode("utf-8", "replace")


class Running:
    """The command that runs now."""

    def __init__(
        self, pid: int, outputs: list[Output], timeout: float | None, grace: float, patience: float | None
    ) -> None:
        self.pid = pid
        self.patience = patience
        """Seconds that the worker may be stopped before it counts as lost; None to never check."""
        self.still_since: float | None = None
        self.deserted = False
        self.look_at = None if patience is None else time.monotonic() + _look_every(patience)
        self.outputs = outputs
        self.open = {output.descriptor: output for output in outputs}
        self.status: int | None = None
        self.grace = grace
        self.stopping = False
        self.stopped = False
        self.timed_out = False
        self.left_over = False
        self.stop_at = None if timeout is None else time.monotonic() + timeout
        self.kill_at: float | None = None
        self.pause = 0.02

    def next_deadline(self) -> float | None:
        """Return when the guard must act, if nothing happens before; None if never."""
        return min((at for at in (self.stop_at, self.kill_at, self.look_at) if at is not None), default=None)


class Guard:
    """Runs one command at a time for one worker."""

    def __init__(self, control: int, wake: int) -> None:
        self._control = control
        self._wake = wake
        self._received = bytearray()
        self._running: Running | None = None
        self._alone = False

    def serve(self) -> None:
        """Serve the worker's messages until the worker is dead, and its last process has exited."""
        while self._running is not None or not self._alone:
            for descriptor in self._ready():
                if descriptor == self._control:
                    self._listen()
                elif descriptor == self._wake:
                    _drain(self._wake)
                elif self._running is not None and not self._running.open[descriptor].pump():
                    del self._running.open[descriptor]
            if self._running is not None:
                self._look_after(self._running)

    def _ready(self) -> list[int]:
        poll = select.poll()
        watched = [self._wake] if self._alone else [self._wake, self._control]
        for descriptor in [*watched, *(self._running.open if self._running else ())]:
            poll.register(descriptor, select.POLLIN)
        at = self._running.next_deadline() if self._running else None
        return [number for number, _ in poll.poll(None if at is None else max(0.0, at - time.monotonic()) * 1000 + 1)]

    def _listen(self) -> None:
        try:
            chunk = os.read(self._control, _CHUNK)
        except ConnectionError:
            chunk = b""
        if not chunk:
            self._alone = True
            if self._running is not None:
                self._stop(min(PATIENCE, self._running.grace))
            return
        self._received += chunk
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            message = json.loads(line)
            if "run" in message:
                self._run(message["run"])
            elif self._running is not None:
                self._stop(min(message["stop"], self._running.grace))

    def _run(self, what: dict[str, Any]) -> None:
        outputs, streams = ([], []) if what["foreground"] else _piped(what)
        try:
            variables = {**os.environ, **what["environment"]}
            environment = {name: value for name, value in variables.items() if value is not None}
            pid = _spawn(what["argv"], environment, streams, what["folder"])
        except OSError as error:
            for output in outputs:
                output.close()
            self._tell({"ended": {"error": f"{what['argv'][0]}: {error.strerror or error}", "errno": error.errno}})
        else:
            self._running = Running(pid, outputs, what["timeout"], what["grace"], what["patience"])
        finally:
            for descriptor in streams:
                os.close(descriptor)

    def _stop(self, grace: float) -> None:
        running = self._running
        assert running is not None  # the caller checks that a command runs
        at = time.monotonic() + grace
        running.kill_at = at if running.kill_at is None else min(at, running.kill_at)
        running.stop_at = None
        if not running.stopping:
            running.stopping = True
            _signal_all(running.pid, signal.SIGTERM)

    def _look_after(self, running: Running) -> None:
        now = time.monotonic()
        if running.stop_at is not None and now >= running.stop_at:
            running.timed_out = True
            self._stop(running.grace)
        if running.look_at is not None and now >= running.look_at:
            self._look_at_worker(running, now)
        if running.kill_at is not None and now >= running.kill_at:
            _signal_all(running.pid, signal.SIGKILL)
            running.kill_at = now + running.pause  # the next round finds a process that was forked in between
            running.pause = min(2 * running.pause, 1.0)
        left = self._bury(running)
        if running.status is None:
            return
        if left and not running.left_over:
            # The command has exited, and some of its processes have not: they are stopped too.
            running.left_over = True
            self._stop(PATIENCE)
        elif not left:
            self._finish(running)

    def _look_at_worker(self, running: Running, now: float) -> None:
        """Stop the command of a stopped worker, which sends no heartbeats, before its lease ends and another worker begins."""
        assert running.patience is not None  # the caller checks this
        running.look_at = now + _look_every(running.patience)
        if not is_stopped(os.getppid()):
            running.still_since = None
        elif running.still_since is None:
            running.still_since = now
        elif now - running.still_since >= running.patience:
            running.look_at, running.deserted = None, True
            self._stop(min(PATIENCE, running.grace))

    def _bury(self, running: Running) -> bool:
        """Reap processes that have exited; return whether any is left. Orphans of the command are our children by now."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == running.pid:
                running.status, running.stopped = status, running.stopping

    def _finish(self, running: Running) -> None:
        self._running = None
        assert running.status is not None  # it is finished because it has a status
        code = os.waitstatus_to_exitcode(running.status)
        ended: dict[str, Any] = {
            "code": code,
            "timed_out": running.timed_out,
            "stopped": running.stopped,
            "deserted": running.deserted,
        }
        if running.outputs:
            stdout, stderr = (output.close() for output in running.outputs)
            ended.update(stdout=stdout, stderr=stderr, cut=running.outputs[0].is_cut)
        self._tell({"ended": ended})

    def _tell(self, message: dict[str, Any]) -> None:
        if self._alone:
            return
        rest = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._control, rest) :]
        except OSError:
            self._alone = True


def _piped(what: dict[str, Any]) -> tuple[list[Output], list[int]]:
    """Return the two outputs of a command, and its own ends: standard input, output and error."""
    outputs, streams = [], [_file_of(what["stdin"].encode("utf-8", "surrogateescape"))]
    for name, tail in (("stdout", STDOUT_TAIL), ("stderr", STDERR_TAIL)):
        ours, theirs = os.pipe()
        outputs.append(Output(ours, what[name], what["log_most"], tail))
        streams.append(theirs)
    return outputs, streams


def _file_of(content: bytes) -> int:
    """Return a descriptor to read `content` from; a pipe would block on a command that does not read."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("task")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _spawn(argv: list[str], environment: dict[str, str], streams: list[int], folder: str | None) -> int:
    """Start a command, killed with this process; raise `OSError` if it cannot be started.

    With streams it has a session of its own; without, it shares the guard's streams and terminal.
    """
    reading, writing = os.pipe()
    guard = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            if streams:
                os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(127)  # the guard was killed before the kernel was asked to kill the command with it
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            for number in (*_IGNORED, signal.SIGPIPE, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            if folder is not None:
                os.chdir(folder)
            os.execvpe(argv[0], argv, environment)  # noqa: S606  the command that the worker sent
        except OSError as error:
            os.write(writing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(writing)
    failure = os.read(reading, 32)
    os.close(reading)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


def _signal_all(session: int, number: int) -> None:
    """Signal every process below this one; if the system cannot list them, the command and those of its session."""
    below = descendants(os.getpid())
    for pid in (-session, session) if below is None else below:
        try:
            os.kill(pid, number)
            if number == signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)  # a stopped process acts on the signal only when it continues
        except (ProcessLookupError, PermissionError):
            continue


def processes() -> list[int] | None:
    """Return the pids of all processes; None if the system does not list them."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None


def descendants(root: int) -> list[int] | None:
    """Return the pids of all processes below `root`, parents first; None if the system does not list them."""
    children: dict[int, list[int]] = {}
    everything = processes()
    if everything is None:
        return None
    for pid in everything:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, ()))
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _look_every(patience: float) -> float:
    return min(1.0, patience / 4)


def is_stopped(pid: int) -> bool:
    """Whether this process is stopped, as by SIGSTOP; False if the system does not show it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def adopt_orphans() -> None:
    """Make orphaned processes below this one its children, if the system can do that (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def wake_with_parent(number: int) -> None:
    """Have the kernel send this signal to this process when its parent dies, if the system can do that (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if not _library and sys.platform.startswith("linux"):
        import ctypes

        _library.append(ctypes.CDLL(None))
    for library in _library:
        library.prctl(option, value, 0, 0, 0)


_library: list[Any] = []  # loaded once, before the first fork


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, _CHUNK):
            pass
    except BlockingIOError:
        return


def main(control: int, lock: int | None) -> None:
    """Run a guard for the worker at the other end of `control`."""
    for descriptor in (control, lock):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    adopt_orphans()
    Guard(control, wake).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
