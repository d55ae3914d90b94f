-- As with thoughts: punctuation separates words.

ALTER TABLE history_lines ADD COLUMN search tsvector GENERATED ALWAYS AS (
    to_tsvector('simple', translate(content, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
) STORED;
CREATE INDEX history_lines_search ON history_lines USING gin (search);
