"""Where the operators' console will live, over gw_core's public names; there is none yet."""
