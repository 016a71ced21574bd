#!/bin/bash
# Runs once, when the database is made: a role for the application that owns no table (docs/operate.md).
set -euo pipefail
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
	--set owner="$POSTGRES_USER" --set database="$POSTGRES_DB" --set password="$FIRM_MEMORY_APP_PASSWORD" <<'SQL'
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE firm_memory_app LOGIN PASSWORD :'password';
GRANT CONNECT ON DATABASE :"database" TO firm_memory_app;
GRANT USAGE ON SCHEMA public TO firm_memory_app;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO firm_memory_app;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public
  GRANT USAGE, SELECT ON SEQUENCES TO firm_memory_app;
SQL
