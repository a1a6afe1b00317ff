"""Reports of eval results: JUnit XML, Markdown, JSON and a self-contained HTML page."""
