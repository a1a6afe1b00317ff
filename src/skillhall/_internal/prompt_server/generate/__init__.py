"""`skillhall generate`: prompts written as skills."""
