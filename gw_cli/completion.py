"""Write the completion scripts for bash, zsh and fish: `python -m gw_cli.completion completions`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gw_cli.commands import ENTRIES
from gw_cli.root import leaf_commands, root_command
from gw_cli.settings.table import SETTINGS

STATES: Final = "ready scheduled running backoff failed"
FILES: Final = "files"
CLEANUPS: Final = "failed-jobs unused-tasks unused-queues"

# What completes a value: a kind of name that `gw --complete` prints, files, or words.
OF_OPTION: Final = {
    "--state": STATES,
    "--task": "tasks",
    "--keep": "tasks",
    "--queue": "queues",
    "--job-key": "keys",
    "--worker": "workers",
    "--job-key-mode": "replace preserve_run_at unsafe_dedupe",
    "--on-error": "stop skip",
    "--format": "jsonl csv",
    "--screen": "overview jobs queues workers cron locks events",
    **{each.flag: each.kind.completion for each in SETTINGS if each.kind.completion},
}
OF_METAVAR: Final = {"FILE": FILES, "FILE...": FILES, "DIR": FILES, "FOLDER": FILES}
OF_ARGUMENT: Final = {"TASK": "tasks", "KEY": "keys", "WORKER...": "workers", "TARGET...": CLEANUPS, **OF_METAVAR}
DYNAMIC: Final = ("tasks", "queues", "keys", "workers")


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its spellings, its help, and what completes its value; None for a switch."""

    flags: tuple[str, ...]
    help: str
    values: str | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A command that does something, with what may follow it."""

    path: str
    options: tuple[Option, ...]
    argument: str


def commands() -> list[Leaf]:
    """Return every command as the program has it now."""
    return [_leaf(path, command) for path, command in leaf_commands(root_command())]


def scripts() -> dict[str, str]:
    """Return the scripts by the names of their files."""
    return {"gw.bash": bash(), "_gw": zsh(), "gw.fish": fish()}


def _leaf(path: str, command: Any) -> Leaf:
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    made = tuple(
        Option((*each.opts, *each.secondary_opts), each.help.split(" [default")[0], _values(each)) for each in options
    )
    return Leaf(path, made, OF_ARGUMENT.get(arguments[0].metavar, "") if arguments else "")


def _values(option: Any) -> str | None:
    if option.is_flag:
        return None
    return OF_OPTION.get(option.opts[0], OF_METAVAR.get(option.metavar, ""))


# -- bash and zsh: the same tables, asked in two ways ----------------------------------------------------------------

HEAD: Final = "# Generated from the program by: python -m gw_cli.completion completions"


def _tables(leaves: list[Leaf]) -> Iterator[str]:
    yield "_gw_flags() {"
    yield '    case "$1" in'
    for leaf in leaves:
        flags = " ".join(flag for option in leaf.options for flag in option.flags if flag.startswith("--"))
        yield f'        "{leaf.path}") echo "{flags} --debug --help" ;;'
    yield "    esac"
    yield "}"
    yield ""
    yield "# What completes a value: - for nothing known, empty for an option that takes none."
    yield "_gw_values() {"
    yield '    case "$1 $2" in'
    for leaf in leaves:
        for option in leaf.options:
            if option.values is not None:
                patterns = "|".join(f'"{leaf.path} {flag}"' for flag in option.flags)
                yield f'        {patterns}) echo "{option.values or "-"}" ;;'
        yield f'        "{leaf.path} ") echo "{leaf.argument or "-"}" ;;'
    yield "    esac"
    yield "}"
    yield ""
    yield "_gw_commands() {"
    yield '    case "$1" in'
    for parent, names in _children(leaves).items():
        yield f'        "{parent}") echo "{" ".join(names)}" ;;'
    yield "    esac"
    yield "}"


def _children(leaves: list[Leaf]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for leaf in leaves:
        words = leaf.path.split()
        for depth in range(1, len(words)):
            names = children.setdefault(" ".join(words[:depth]), [])
            if words[depth] not in names:
                names.append(words[depth])
    return children


BASH: Final = r"""
_gw_offer() {
    # Word by word, and not through compgen -W, which would run what a name contains.
    local each
    while IFS= read -r each; do
        [[ -n $each && $each == "$cur"* ]] && COMPREPLY+=("${each#"$before"}")
    done
}

_gw() {
    local cur prev place=gw below values word before="" words=()
    COMPREPLY=()
    # Bash has taken names with colons and --option=value apart; the line has them whole.
    IFS=$' \t\n' read -ra words <<< "${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
    cur=${words[${#words[@]}-1]} prev=${words[${#words[@]}-2]}
    for word in "${words[@]:1:${#words[@]}-2}"; do
        below=" $(_gw_commands "$place") "
        [[ $word != -* && $below == *" $word "* ]] && place="$place $word"
    done
    if [[ -n $(_gw_commands "$place") ]]; then
        _gw_offer < <(_gw_commands "$place" | tr ' ' '\n')
        return
    fi
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*} cur=${cur#*=}
    elif [[ $cur == -* ]]; then
        _gw_offer < <(_gw_flags "$place" | tr ' ' '\n')
        return
    fi
    # Bash puts what is offered behind the last colon.
    [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] && before=${cur%"${cur##*:}"}
    [[ $prev == -* ]] && values=$(_gw_values "$place" "$prev")
    [[ -z $values ]] && values=$(_gw_values "$place" "")
    case $values in
        -) ;;
        files) compopt -o default 2>/dev/null ;;
        tasks|queues|keys|workers) _gw_offer < <(gw --complete "$values" "$cur" 2>/dev/null) ;;
        *) _gw_offer < <(tr ' ' '\n' <<< "$values") ;;
    esac
}

complete -F _gw gw
"""

ZSH: Final = r"""
_gw() {
    local place=gw below values word i cur=${words[CURRENT]} prev=${words[CURRENT-1]}
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        below=" $(_gw_commands "$place") "
        [[ $word != -* && $below == *" $word "* ]] && place="$place $word"
    done
    values=$(_gw_commands "$place")
    if [[ -n $values ]]; then
        compadd -- ${(s: :)values}
        return
    fi
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*} cur=${cur#*=}
        compset -P '*='
    elif [[ $cur == -* ]]; then
        compadd -- ${(s: :)"$(_gw_flags "$place")"}
        return
    fi
    values=
    [[ $prev == -* ]] && values=$(_gw_values "$place" "$prev")
    [[ -z $values ]] && values=$(_gw_values "$place" "")
    case $values in
        -) ;;
        files) _files ;;
        tasks|queues|keys|workers) compadd -- ${(f)"$(gw --complete "$values" "$cur" 2>/dev/null)"} ;;
        *) compadd -- ${(s: :)values} ;;
    esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _gw "$@"
else
    compdef _gw gw
fi
"""


def bash() -> str:
    """Return the script for bash: source it, or put it where bash-completion looks."""
    return "\n".join([HEAD, "", *_tables(commands())]) + "\n" + BASH


def zsh() -> str:
    """Return the script for zsh: put it into a folder of `fpath`."""
    return "\n".join(["#compdef gw", HEAD, "", *_tables(commands())]) + "\n" + ZSH


# -- fish ------------------------------------------------------------------------------------------------------------


def fish() -> str:
    """Return the script for fish: put it into ~/.config/fish/completions."""
    return "\n".join([HEAD, "", *_fish()]) + "\n"


def _fish() -> Iterator[str]:
    found = commands()
    summaries = {entry.name: entry.summary for entry in ENTRIES}
    yield "complete -c gw -f"
    yield "complete -c gw -l debug -d 'Show where an error came from'"
    for parent, names in _children(found).items():
        words = parent.split()[1:]
        for name in names:
            described = f" -d {_fish_text(summaries[name])}" if not words and name in summaries else ""
            yield f"complete -c gw -n {_fish_text(_fish_at(words, names))} -a {name}{described}"
    for leaf in found:
        here = _fish_text(_fish_at(leaf.path.split()[1:], []))
        for option in leaf.options:
            yield f"complete -c gw -n {here} {_fish_option(option)}"
        if leaf.argument:
            yield f"complete -c gw -n {here} {_fish_values(leaf.argument)}"


def _fish_at(words: list[str], below: list[str]) -> str:
    """Return the condition that the line has these words, and none of those below them yet."""
    seen = [f"__fish_seen_subcommand_from {word}" for word in words]
    unseen = [f"not __fish_seen_subcommand_from {' '.join(below)}"] if below else []
    return "; and ".join([*seen, *unseen])


def _fish_option(option: Option) -> str:
    spelt = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags]
    value = "" if option.values is None else f" -r {_fish_values(option.values)}".rstrip()
    return f"{' '.join(spelt)}{value} -d {_fish_text(option.help)}"


def _fish_values(values: str) -> str:
    if values in DYNAMIC:
        return f'-a \'(gw --complete {values} (commandline -ct | string replace -r "^--[^=]*=" "") 2>/dev/null)\''
    if values == FILES:
        return "-F"
    return f"-a {_fish_text(values)}" if values else ""


def _fish_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def main(folder: str) -> None:
    """Write all scripts into a folder."""
    for name, text in scripts().items():
        (Path(folder) / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
