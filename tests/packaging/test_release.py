"""What a release consists of: packages that everyone can build again, checksums, and their signature."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program `.ci/release`, with settings of git of its own."""
    loader = SourceFileLoader("gw_release", str(CHECKOUT / ".ci" / "release"))
    spec = importlib.util.spec_from_loader("gw_release", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "SIGNERS", tmp_path / "allowed_signers")
    return module


@pytest.fixture
def sums(release: ModuleType, tmp_path: Path) -> Path:
    """The checksums of a package."""
    (tmp_path / "package.whl").write_bytes(b"package")
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(release.checksums([tmp_path / "package.whl"]))
    return sums


def run(*command: object, stdin: bytes = b"") -> int:
    return subprocess.run([str(each) for each in command], input=stdin, capture_output=True, check=False).returncode


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two builds of the sdist."""
    folders = [tmp_path_factory.mktemp("sdist") for _ in range(2)]
    program = "import sys; from hatchling.build import build_sdist; [build_sdist(each) for each in sys.argv[1:]]"
    subprocess.run([sys.executable, "-c", program, *map(str, folders)], cwd=CHECKOUT, capture_output=True, check=True)
    return [next(folder.glob("*.tar.gz")) for folder in folders]


@pytest.mark.once
def test_the_sdist_says_how_to_report_a_vulnerability(sdists: list[Path]) -> None:
    with tarfile.open(sdists[0]) as files:
        names = {name.partition("/")[2] for name in files.getnames()}

    assert {"SECURITY.md", ".ci/allowed_signers", ".ci/locks/runtime.txt"} <= names
    assert "(SECURITY.md)" in (CHECKOUT / "README.md").read_text("utf-8")


@pytest.mark.once
def test_a_second_build_has_the_same_bytes(sdists: list[Path]) -> None:
    first, second = sdists
    assert first.read_bytes() == second.read_bytes()


def test_sha256sum_reads_the_checksums(sums: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not installed; apt install coreutils")
    assert subprocess.run(["sha256sum", "--check", "--quiet", sums.name], cwd=sums.parent, check=False).returncode == 0


@pytest.mark.parametrize("key", [None, "0123456789ABCDEF"], ids=["no key", "a key of GnuPG"])
def test_without_an_ssh_key_nothing_is_signed(
    release: ModuleType, sums: Path, capsys: pytest.CaptureFixture[str], key: str | None
) -> None:
    if key is not None:
        run("git", "config", "--global", "user.signingkey", key)

    assert release.signed(sums) is None
    assert "git does not sign with ssh" in capsys.readouterr().out


@pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed; apt install openssh-client"
)
def test_the_checksums_are_signed_as_the_policy_says(
    release: ModuleType, sums: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    run("git", "config", "--global", "gpg.format", "ssh")
    run("git", "config", "--global", "user.signingkey", key)

    signature = release.signed(sums)
    assert "add the public key to allowed_signers" in capsys.readouterr().out

    release.SIGNERS.write_text(f'ann namespaces="file,git" {key.with_suffix(".pub").read_text()}')
    assert release.signed(sums) == signature
    assert capsys.readouterr().out == ""
    verify = ("ssh-keygen", "-Y", "verify", "-f", release.SIGNERS, "-I", "ann", "-n", "file", "-s", signature)
    assert run(*verify, stdin=sums.read_bytes()) == 0
    assert run(*verify, stdin=sums.read_bytes() + b"changed") != 0
