"""Framework adapters. Each framework is imported only by its adapter's module."""
