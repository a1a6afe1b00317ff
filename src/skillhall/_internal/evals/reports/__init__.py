"""Reports of eval results: JUnit XML, Markdown, JSON and self-contained HTML."""
