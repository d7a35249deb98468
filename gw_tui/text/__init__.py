"""How values and foreign text become text on a terminal."""
