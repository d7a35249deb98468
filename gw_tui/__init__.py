"""The operators' console: a front end over gw_core's public names."""
