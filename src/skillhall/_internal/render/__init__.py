"""The words: texts for models and for scripts, made from skills. Nothing here reads or decides."""
