"""The operators' console, over gw_core's public names: what it shows, and the hands to mend it."""
