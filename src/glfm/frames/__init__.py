"""Users' tables: columns, their types and times, one class per frame library."""
