"""`python -m gw_cli` is `gw`."""

from gw_cli.main import main

if __name__ == "__main__":
    main()
