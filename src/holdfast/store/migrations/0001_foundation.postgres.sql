-- Full-text search on PostgreSQL: a generated tsvector over the first 200,000 characters (a longer one may not fit).
-- Punctuation separates words, as on SQLite: the parser would take file_name.py for one word and never find "name".

ALTER TABLE thoughts ADD COLUMN search tsvector GENERATED ALWAYS AS (
    to_tsvector('simple', translate(left(content, 200000), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
) STORED;
CREATE INDEX thoughts_search ON thoughts USING gin (search);
