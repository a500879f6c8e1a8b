"""Users' tables: columns, their types and times, and one class per frame library."""
