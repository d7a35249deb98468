"""The operators' console: monitors and manages the queue through gw_core's public names."""
