-- A head counts with its first 15 hexadecimal digits, in two parts, because a sum of whole ones would overflow.

UPDATE event_head SET epoch = lower(hex(randomblob(16))), heads_sum = (
    WITH RECURSIVE places (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < 15),
    digits (place, digit) AS (
        SELECT place, instr('123456789abcdef', substr(head_hash, place, 1)) FROM sessions, places
    )
    SELECT ((((SELECT coalesce(sum(digit << (4 * (7 - place))), 0) FROM digits WHERE place <= 7) & 268435455) << 32)
        + (SELECT coalesce(sum(digit << (4 * (15 - place))), 0) FROM digits WHERE place > 7)) & 1152921504606846975
);
