"""Builds services from settings. The only package that knows every concrete class."""
