"""The database: tables, migrations, transactions and events, on SQLite and on PostgreSQL."""
