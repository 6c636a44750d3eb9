"""What targets that write source text share: names, statements, comments, files."""
