"""Write the generated parts of the reference pages: `python -m gw_cli.manual docs/reference`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from gw_cli.configuration import OTHER_VARIABLES, SETTINGS, Setting
from gw_cli.exit_codes import ExitCode
from gw_cli.root import root_command

REGION: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(page: str) -> str:
    """Return a page with every generated part as the program is now."""
    parts = {"commands": commands, "settings": settings, "variables": variables, "exit_codes": exit_codes}
    return REGION.sub(lambda match: f"{match[1]}\n{parts[match[2]]()}\n\n{match[3]}", page)


def commands() -> str:
    """Describe every command with its arguments and options."""
    return "\n\n".join("\n".join(_command(name, command)) for name, command in leaves(root_command()))


def settings() -> str:
    """Describe every setting with its type, default, flag and variables."""
    rows = [(f"`{each.name}`", _words(each), _default(each), _variables(each)) for each in SETTINGS]
    return "\n".join(_table(("Setting", "Meaning", "Default", "Environment"), rows))


def variables() -> str:
    """Describe the environment variables that are not settings."""
    rows = [(f"`{name}`", meaning) for name, meaning in OTHER_VARIABLES.items()]
    return "\n".join(_table(("Variable", "Meaning"), rows))


def exit_codes() -> str:
    """Describe every exit code."""
    rows = [(f"{code.value}", f"`{code.name}`", code.meaning) for code in ExitCode]
    return "\n".join(_table(("Code", "Name", "Meaning"), rows))


def leaves(command: Any, path: str = "gw") -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with the words that call it."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else None
    if names is None:
        yield path, command
        return
    for name in names:
        yield from leaves(command.get_command(None, name), f"{path} {name}")


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    yield f"## {name}\n"
    yield f"    {' '.join([name, *(each.metavar for each in arguments), '[OPTIONS]'])}\n"
    yield re.sub(r"(?<=[.;]) (?=[A-Z])", "\n", command.help.strip()) + "\n"
    rows = [(f"`{each.metavar}`", each.help) for each in arguments] + [(_flags(each), each.help) for each in options]
    yield from _table(("Option", "Meaning"), rows)


def _flags(option: Any) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join(
        f"`{flag}{value if flag.startswith('--') else ''}`" for flag in (*option.opts, *option.secondary_opts)
    )


def _words(setting: Setting[Any]) -> str:
    return setting.help


def _default(setting: Setting[Any]) -> str:
    written = setting.write(setting.default)
    return f"`{written}`" if written else "none"


def _variables(setting: Setting[Any]) -> str:
    return ", ".join(f"`{name}`" for name in setting.variables)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for row in (heads, tuple("---" for _ in heads), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def main(folder: str) -> None:
    """Renew all pages of a folder."""
    for path in sorted(Path(folder).glob("*.md")):
        page = path.read_text("utf-8")
        if (new := renewed(page)) != page:
            path.write_text(new, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
