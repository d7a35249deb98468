"""The command line: a thin front end over gw_core's public names."""
