# Completion of gw for bash: source this file.
source <(command gw completion bash)
