"""Factories and strategies that tests share; nothing here asserts."""
