# Completion of gw for fish: put this file into ~/.config/fish/completions.
command gw completion fish | source
