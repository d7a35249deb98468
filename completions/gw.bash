# Generated from the program by: python -m gw_cli.completion completions

_gw_flags() {
    case "$1" in
        "gw run") echo "--once --cron --verbose --quiet --connection --schema --password-command --pg-bin --prepared-statements --no-prepared-statements --max-pool-size --listen --no-listen --listen-connection --tasks --app --crontab --strict --no-strict --watch --no-watch --history --executable-env --forbidden-flag --plugin --concurrency --jobs --poll-interval --prefetch --client-time --no-client-time --grace-period --recover --no-recover --heartbeat-interval --sweep-interval --sweep-threshold --recovery-delay --orphans-after --resilient-flag --resilient-multiplier --processes --max-jobs --max-lifetime --max-rss --probe-port --probe-host --metrics --no-metrics --log-level --log-format --log-time --config --debug --help" ;;
        "gw add") echo "--payload --payload-file --queue --run-at --max-attempts --job-key --job-key-mode --priority --flag --from --format --on-error --strict --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw complete") echo "--job-key --state --task --queue --worker --flag --error --all --dry-run --yes --allow-none --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw fail") echo "--reason --job-key --state --task --queue --worker --flag --error --all --dry-run --yes --allow-none --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw reschedule") echo "--run-at --priority --attempts --max-attempts --job-key --state --task --queue --worker --flag --error --all --dry-run --yes --allow-none --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw retry") echo "--job-key --state --task --queue --worker --flag --error --all --dry-run --yes --allow-none --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw cancel") echo "--job-key --task --queue --worker --flag --all --yes --reason --retry --timeout --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw remove") echo "--json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw cron parse") echo "--json --tasks --app --config --debug --help" ;;
        "gw cron validate") echo "--tasks --json --config --debug --help" ;;
        "gw cron next") echo "--number --after --item --json --tasks --app --config --debug --help" ;;
        "gw cron run") echo "--json --connection --schema --password-command --pg-bin --tasks --app --crontab --config --debug --help" ;;
        "gw cron list") echo "--json --connection --schema --password-command --pg-bin --tasks --app --crontab --config --debug --help" ;;
        "gw cron forget") echo "--json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw list") echo "--job-key --state --task --queue --worker --flag --error --after --limit --timeout --payload --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw show") echo "--job-key --key --payload --no-payload --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw stats") echo "--exact --tasks --watch --interval --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw queues") echo "--locked --after --limit --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw tasks") echo "--exact --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw tui") echo "--screen --filter --once --json --demo --record --replay --connection --schema --password-command --pg-bin --prepared-statements --no-prepared-statements --crontab --read-only --no-read-only --env --interval --theme --ascii --no-ascii --mouse --no-mouse --payload --no-payload --max-marked --log-payloads --config --debug --help" ;;
        "gw workers") echo "--json --connection --schema --password-command --pg-bin --sweep-threshold --orphans-after --resilient-flag --resilient-multiplier --config --debug --help" ;;
        "gw sweep") echo "--dry-run --json --connection --schema --password-command --pg-bin --sweep-threshold --recovery-delay --orphans-after --resilient-flag --resilient-multiplier --config --debug --help" ;;
        "gw unlock") echo "--dry-run --yes --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw cleanup") echo "--keep --dry-run --yes --json --connection --schema --password-command --pg-bin --tasks --app --config --debug --help" ;;
        "gw doctor") echo "--json --connection --schema --password-command --pg-bin --prepared-statements --no-prepared-statements --config --debug --help" ;;
        "gw bench") echo "--count --json --connection --pg-bin --prepared-statements --no-prepared-statements --concurrency --jobs --config --debug --help" ;;
        "gw health") echo "--json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw migrate") echo "--plan --sql --json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw config show") echo "--json --connection --schema --password-command --pg-bin --config --debug --help" ;;
        "gw config schema") echo " --debug --help" ;;
        "gw init") echo "--embedded --no-embedded --json --debug --help" ;;
        "gw dev") echo "--connection --schema --password-command --pg-bin --tasks --app --crontab --concurrency --jobs --log-level --log-time --config --debug --help" ;;
    esac
}

# What completes a value: - for nothing known, empty for an option that takes none.
_gw_values() {
    case "$1 $2" in
        "gw run --connection"|"gw run -c") echo "-" ;;
        "gw run --schema"|"gw run -s") echo "-" ;;
        "gw run --password-command") echo "-" ;;
        "gw run --pg-bin") echo "files" ;;
        "gw run --max-pool-size"|"gw run -m") echo "-" ;;
        "gw run --listen-connection") echo "-" ;;
        "gw run --tasks") echo "files" ;;
        "gw run --app"|"gw run -A") echo "-" ;;
        "gw run --crontab") echo "files" ;;
        "gw run --history") echo "-" ;;
        "gw run --executable-env") echo "all minimal" ;;
        "gw run --forbidden-flag") echo "-" ;;
        "gw run --plugin") echo "-" ;;
        "gw run --concurrency"|"gw run --jobs"|"gw run -j") echo "-" ;;
        "gw run --poll-interval") echo "-" ;;
        "gw run --prefetch") echo "-" ;;
        "gw run --grace-period") echo "-" ;;
        "gw run --heartbeat-interval") echo "-" ;;
        "gw run --sweep-interval") echo "-" ;;
        "gw run --sweep-threshold") echo "-" ;;
        "gw run --recovery-delay") echo "-" ;;
        "gw run --orphans-after") echo "-" ;;
        "gw run --resilient-flag") echo "-" ;;
        "gw run --resilient-multiplier") echo "-" ;;
        "gw run --processes") echo "auto" ;;
        "gw run --max-jobs") echo "-" ;;
        "gw run --max-lifetime") echo "-" ;;
        "gw run --max-rss") echo "-" ;;
        "gw run --probe-port") echo "-" ;;
        "gw run --probe-host") echo "-" ;;
        "gw run --log-level") echo "debug info warning error" ;;
        "gw run --log-format") echo "text json" ;;
        "gw run --log-time") echo "auto always never" ;;
        "gw run --config"|"gw run -C") echo "files" ;;
        "gw run ") echo "-" ;;
        "gw add --payload"|"gw add -p") echo "-" ;;
        "gw add --payload-file") echo "files" ;;
        "gw add --queue"|"gw add -q") echo "queues" ;;
        "gw add --run-at") echo "-" ;;
        "gw add --max-attempts") echo "-" ;;
        "gw add --job-key"|"gw add -k") echo "keys" ;;
        "gw add --job-key-mode") echo "replace preserve_run_at unsafe_dedupe" ;;
        "gw add --priority") echo "-" ;;
        "gw add --flag") echo "-" ;;
        "gw add --from") echo "files" ;;
        "gw add --format") echo "jsonl csv" ;;
        "gw add --on-error") echo "stop skip" ;;
        "gw add --connection"|"gw add -c") echo "-" ;;
        "gw add --schema"|"gw add -s") echo "-" ;;
        "gw add --password-command") echo "-" ;;
        "gw add --pg-bin") echo "files" ;;
        "gw add --config"|"gw add -C") echo "files" ;;
        "gw add ") echo "tasks" ;;
        "gw complete --job-key"|"gw complete -k") echo "keys" ;;
        "gw complete --state") echo "ready scheduled running backoff failed" ;;
        "gw complete --task") echo "tasks" ;;
        "gw complete --queue"|"gw complete -q") echo "queues" ;;
        "gw complete --worker") echo "workers" ;;
        "gw complete --flag") echo "-" ;;
        "gw complete --error") echo "-" ;;
        "gw complete --connection"|"gw complete -c") echo "-" ;;
        "gw complete --schema"|"gw complete -s") echo "-" ;;
        "gw complete --password-command") echo "-" ;;
        "gw complete --pg-bin") echo "files" ;;
        "gw complete --config"|"gw complete -C") echo "files" ;;
        "gw complete ") echo "-" ;;
        "gw fail --reason") echo "-" ;;
        "gw fail --job-key"|"gw fail -k") echo "keys" ;;
        "gw fail --state") echo "ready scheduled running backoff failed" ;;
        "gw fail --task") echo "tasks" ;;
        "gw fail --queue"|"gw fail -q") echo "queues" ;;
        "gw fail --worker") echo "workers" ;;
        "gw fail --flag") echo "-" ;;
        "gw fail --error") echo "-" ;;
        "gw fail --connection"|"gw fail -c") echo "-" ;;
        "gw fail --schema"|"gw fail -s") echo "-" ;;
        "gw fail --password-command") echo "-" ;;
        "gw fail --pg-bin") echo "files" ;;
        "gw fail --config"|"gw fail -C") echo "files" ;;
        "gw fail ") echo "-" ;;
        "gw reschedule --run-at") echo "-" ;;
        "gw reschedule --priority") echo "-" ;;
        "gw reschedule --attempts") echo "-" ;;
        "gw reschedule --max-attempts") echo "-" ;;
        "gw reschedule --job-key"|"gw reschedule -k") echo "keys" ;;
        "gw reschedule --state") echo "ready scheduled running backoff failed" ;;
        "gw reschedule --task") echo "tasks" ;;
        "gw reschedule --queue"|"gw reschedule -q") echo "queues" ;;
        "gw reschedule --worker") echo "workers" ;;
        "gw reschedule --flag") echo "-" ;;
        "gw reschedule --error") echo "-" ;;
        "gw reschedule --connection"|"gw reschedule -c") echo "-" ;;
        "gw reschedule --schema"|"gw reschedule -s") echo "-" ;;
        "gw reschedule --password-command") echo "-" ;;
        "gw reschedule --pg-bin") echo "files" ;;
        "gw reschedule --config"|"gw reschedule -C") echo "files" ;;
        "gw reschedule ") echo "-" ;;
        "gw retry --job-key"|"gw retry -k") echo "keys" ;;
        "gw retry --state") echo "ready scheduled running backoff failed" ;;
        "gw retry --task") echo "tasks" ;;
        "gw retry --queue"|"gw retry -q") echo "queues" ;;
        "gw retry --worker") echo "workers" ;;
        "gw retry --flag") echo "-" ;;
        "gw retry --error") echo "-" ;;
        "gw retry --connection"|"gw retry -c") echo "-" ;;
        "gw retry --schema"|"gw retry -s") echo "-" ;;
        "gw retry --password-command") echo "-" ;;
        "gw retry --pg-bin") echo "files" ;;
        "gw retry --config"|"gw retry -C") echo "files" ;;
        "gw retry ") echo "-" ;;
        "gw cancel --job-key"|"gw cancel -k") echo "keys" ;;
        "gw cancel --task") echo "tasks" ;;
        "gw cancel --queue"|"gw cancel -q") echo "queues" ;;
        "gw cancel --worker") echo "workers" ;;
        "gw cancel --flag") echo "-" ;;
        "gw cancel --reason") echo "-" ;;
        "gw cancel --timeout") echo "-" ;;
        "gw cancel --connection"|"gw cancel -c") echo "-" ;;
        "gw cancel --schema"|"gw cancel -s") echo "-" ;;
        "gw cancel --password-command") echo "-" ;;
        "gw cancel --pg-bin") echo "files" ;;
        "gw cancel --config"|"gw cancel -C") echo "files" ;;
        "gw cancel ") echo "-" ;;
        "gw remove --connection"|"gw remove -c") echo "-" ;;
        "gw remove --schema"|"gw remove -s") echo "-" ;;
        "gw remove --password-command") echo "-" ;;
        "gw remove --pg-bin") echo "files" ;;
        "gw remove --config"|"gw remove -C") echo "files" ;;
        "gw remove ") echo "keys" ;;
        "gw cron parse --tasks") echo "files" ;;
        "gw cron parse --app"|"gw cron parse -A") echo "-" ;;
        "gw cron parse --config"|"gw cron parse -C") echo "files" ;;
        "gw cron parse ") echo "files" ;;
        "gw cron validate --tasks"|"gw cron validate -t") echo "files" ;;
        "gw cron validate --config"|"gw cron validate -C") echo "files" ;;
        "gw cron validate ") echo "files" ;;
        "gw cron next --number"|"gw cron next -n") echo "-" ;;
        "gw cron next --after") echo "-" ;;
        "gw cron next --item"|"gw cron next -i") echo "-" ;;
        "gw cron next --tasks") echo "files" ;;
        "gw cron next --app"|"gw cron next -A") echo "-" ;;
        "gw cron next --config"|"gw cron next -C") echo "files" ;;
        "gw cron next ") echo "files" ;;
        "gw cron run --connection"|"gw cron run -c") echo "-" ;;
        "gw cron run --schema"|"gw cron run -s") echo "-" ;;
        "gw cron run --password-command") echo "-" ;;
        "gw cron run --pg-bin") echo "files" ;;
        "gw cron run --tasks") echo "files" ;;
        "gw cron run --app"|"gw cron run -A") echo "-" ;;
        "gw cron run --crontab") echo "files" ;;
        "gw cron run --config"|"gw cron run -C") echo "files" ;;
        "gw cron run ") echo "-" ;;
        "gw cron list --connection"|"gw cron list -c") echo "-" ;;
        "gw cron list --schema"|"gw cron list -s") echo "-" ;;
        "gw cron list --password-command") echo "-" ;;
        "gw cron list --pg-bin") echo "files" ;;
        "gw cron list --tasks") echo "files" ;;
        "gw cron list --app"|"gw cron list -A") echo "-" ;;
        "gw cron list --crontab") echo "files" ;;
        "gw cron list --config"|"gw cron list -C") echo "files" ;;
        "gw cron list ") echo "-" ;;
        "gw cron forget --connection"|"gw cron forget -c") echo "-" ;;
        "gw cron forget --schema"|"gw cron forget -s") echo "-" ;;
        "gw cron forget --password-command") echo "-" ;;
        "gw cron forget --pg-bin") echo "files" ;;
        "gw cron forget --config"|"gw cron forget -C") echo "files" ;;
        "gw cron forget ") echo "-" ;;
        "gw list --job-key"|"gw list -k") echo "keys" ;;
        "gw list --state") echo "ready scheduled running backoff failed" ;;
        "gw list --task") echo "tasks" ;;
        "gw list --queue"|"gw list -q") echo "queues" ;;
        "gw list --worker") echo "workers" ;;
        "gw list --flag") echo "-" ;;
        "gw list --error") echo "-" ;;
        "gw list --after") echo "-" ;;
        "gw list --limit"|"gw list -n") echo "-" ;;
        "gw list --timeout") echo "-" ;;
        "gw list --connection"|"gw list -c") echo "-" ;;
        "gw list --schema"|"gw list -s") echo "-" ;;
        "gw list --password-command") echo "-" ;;
        "gw list --pg-bin") echo "files" ;;
        "gw list --config"|"gw list -C") echo "files" ;;
        "gw list ") echo "-" ;;
        "gw show --job-key"|"gw show --key"|"gw show -k") echo "keys" ;;
        "gw show --connection"|"gw show -c") echo "-" ;;
        "gw show --schema"|"gw show -s") echo "-" ;;
        "gw show --password-command") echo "-" ;;
        "gw show --pg-bin") echo "files" ;;
        "gw show --config"|"gw show -C") echo "files" ;;
        "gw show ") echo "-" ;;
        "gw stats --interval") echo "-" ;;
        "gw stats --connection"|"gw stats -c") echo "-" ;;
        "gw stats --schema"|"gw stats -s") echo "-" ;;
        "gw stats --password-command") echo "-" ;;
        "gw stats --pg-bin") echo "files" ;;
        "gw stats --config"|"gw stats -C") echo "files" ;;
        "gw stats ") echo "-" ;;
        "gw queues --after") echo "-" ;;
        "gw queues --limit"|"gw queues -n") echo "-" ;;
        "gw queues --connection"|"gw queues -c") echo "-" ;;
        "gw queues --schema"|"gw queues -s") echo "-" ;;
        "gw queues --password-command") echo "-" ;;
        "gw queues --pg-bin") echo "files" ;;
        "gw queues --config"|"gw queues -C") echo "files" ;;
        "gw queues ") echo "-" ;;
        "gw tasks --connection"|"gw tasks -c") echo "-" ;;
        "gw tasks --schema"|"gw tasks -s") echo "-" ;;
        "gw tasks --password-command") echo "-" ;;
        "gw tasks --pg-bin") echo "files" ;;
        "gw tasks --config"|"gw tasks -C") echo "files" ;;
        "gw tasks ") echo "-" ;;
        "gw tui --screen") echo "overview jobs queues workers cron locks events" ;;
        "gw tui --filter") echo "-" ;;
        "gw tui --record") echo "files" ;;
        "gw tui --replay") echo "files" ;;
        "gw tui --connection"|"gw tui -c") echo "-" ;;
        "gw tui --schema"|"gw tui -s") echo "-" ;;
        "gw tui --password-command") echo "-" ;;
        "gw tui --pg-bin") echo "files" ;;
        "gw tui --crontab") echo "files" ;;
        "gw tui --env") echo "-" ;;
        "gw tui --interval") echo "-" ;;
        "gw tui --theme") echo "gw-dark gw-light gw-contrast" ;;
        "gw tui --max-marked") echo "-" ;;
        "gw tui --log-payloads") echo "whole masked none" ;;
        "gw tui --config"|"gw tui -C") echo "files" ;;
        "gw tui ") echo "-" ;;
        "gw workers --connection"|"gw workers -c") echo "-" ;;
        "gw workers --schema"|"gw workers -s") echo "-" ;;
        "gw workers --password-command") echo "-" ;;
        "gw workers --pg-bin") echo "files" ;;
        "gw workers --sweep-threshold") echo "-" ;;
        "gw workers --orphans-after") echo "-" ;;
        "gw workers --resilient-flag") echo "-" ;;
        "gw workers --resilient-multiplier") echo "-" ;;
        "gw workers --config"|"gw workers -C") echo "files" ;;
        "gw workers ") echo "-" ;;
        "gw sweep --connection"|"gw sweep -c") echo "-" ;;
        "gw sweep --schema"|"gw sweep -s") echo "-" ;;
        "gw sweep --password-command") echo "-" ;;
        "gw sweep --pg-bin") echo "files" ;;
        "gw sweep --sweep-threshold") echo "-" ;;
        "gw sweep --recovery-delay") echo "-" ;;
        "gw sweep --orphans-after") echo "-" ;;
        "gw sweep --resilient-flag") echo "-" ;;
        "gw sweep --resilient-multiplier") echo "-" ;;
        "gw sweep --config"|"gw sweep -C") echo "files" ;;
        "gw sweep ") echo "-" ;;
        "gw unlock --connection"|"gw unlock -c") echo "-" ;;
        "gw unlock --schema"|"gw unlock -s") echo "-" ;;
        "gw unlock --password-command") echo "-" ;;
        "gw unlock --pg-bin") echo "files" ;;
        "gw unlock --config"|"gw unlock -C") echo "files" ;;
        "gw unlock ") echo "workers" ;;
        "gw cleanup --keep") echo "tasks" ;;
        "gw cleanup --connection"|"gw cleanup -c") echo "-" ;;
        "gw cleanup --schema"|"gw cleanup -s") echo "-" ;;
        "gw cleanup --password-command") echo "-" ;;
        "gw cleanup --pg-bin") echo "files" ;;
        "gw cleanup --tasks") echo "files" ;;
        "gw cleanup --app"|"gw cleanup -A") echo "-" ;;
        "gw cleanup --config"|"gw cleanup -C") echo "files" ;;
        "gw cleanup ") echo "failed-jobs unused-tasks unused-queues" ;;
        "gw doctor --connection"|"gw doctor -c") echo "-" ;;
        "gw doctor --schema"|"gw doctor -s") echo "-" ;;
        "gw doctor --password-command") echo "-" ;;
        "gw doctor --pg-bin") echo "files" ;;
        "gw doctor --config"|"gw doctor -C") echo "files" ;;
        "gw doctor ") echo "-" ;;
        "gw bench --count"|"gw bench -n") echo "-" ;;
        "gw bench --connection"|"gw bench -c") echo "-" ;;
        "gw bench --pg-bin") echo "files" ;;
        "gw bench --concurrency"|"gw bench --jobs"|"gw bench -j") echo "-" ;;
        "gw bench --config"|"gw bench -C") echo "files" ;;
        "gw bench ") echo "-" ;;
        "gw health --connection"|"gw health -c") echo "-" ;;
        "gw health --schema"|"gw health -s") echo "-" ;;
        "gw health --password-command") echo "-" ;;
        "gw health --pg-bin") echo "files" ;;
        "gw health --config"|"gw health -C") echo "files" ;;
        "gw health ") echo "-" ;;
        "gw migrate --connection"|"gw migrate -c") echo "-" ;;
        "gw migrate --schema"|"gw migrate -s") echo "-" ;;
        "gw migrate --password-command") echo "-" ;;
        "gw migrate --pg-bin") echo "files" ;;
        "gw migrate --config"|"gw migrate -C") echo "files" ;;
        "gw migrate ") echo "-" ;;
        "gw config show --connection"|"gw config show -c") echo "-" ;;
        "gw config show --schema"|"gw config show -s") echo "-" ;;
        "gw config show --password-command") echo "-" ;;
        "gw config show --pg-bin") echo "files" ;;
        "gw config show --config"|"gw config show -C") echo "files" ;;
        "gw config show ") echo "-" ;;
        "gw config schema ") echo "-" ;;
        "gw init ") echo "files" ;;
        "gw dev --connection"|"gw dev -c") echo "-" ;;
        "gw dev --schema"|"gw dev -s") echo "-" ;;
        "gw dev --password-command") echo "-" ;;
        "gw dev --pg-bin") echo "files" ;;
        "gw dev --tasks") echo "files" ;;
        "gw dev --app"|"gw dev -A") echo "-" ;;
        "gw dev --crontab") echo "files" ;;
        "gw dev --concurrency"|"gw dev --jobs"|"gw dev -j") echo "-" ;;
        "gw dev --log-level") echo "debug info warning error" ;;
        "gw dev --log-time") echo "auto always never" ;;
        "gw dev --config"|"gw dev -C") echo "files" ;;
        "gw dev ") echo "-" ;;
    esac
}

_gw_commands() {
    case "$1" in
        "gw") echo "run add complete fail reschedule retry cancel remove cron list show stats queues tasks tui workers sweep unlock cleanup doctor bench health migrate config init dev" ;;
        "gw cron") echo "parse validate next run list forget" ;;
        "gw config") echo "show schema" ;;
    esac
}

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
