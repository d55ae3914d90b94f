-- Full-text search on PostgreSQL: a generated tsvector over the first 200,000 characters (a longer one may not fit).

ALTER TABLE thoughts ADD COLUMN search tsvector
    GENERATED ALWAYS AS (to_tsvector('simple', left(content, 200000))) STORED;
CREATE INDEX thoughts_search ON thoughts USING gin (search);
