"""How smoothly the page moves."""
