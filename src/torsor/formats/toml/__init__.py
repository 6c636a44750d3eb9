"""TOML: the native format."""
