"""Database: tables, migrations, transactions and events, on SQLite and PostgreSQL."""
