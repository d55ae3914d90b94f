-- A head counts with its first 15 hexadecimal digits, in two parts, because a sum of whole ones would overflow.

UPDATE event_head SET epoch = md5(random()::text || clock_timestamp()::text), heads_sum = (
    SELECT coalesce(((sum(high)::bigint & 268435455) << 32) + sum(low)::bigint, 0) & 1152921504606846975 FROM (
        SELECT ('x' || substr(head_hash, 1, 7))::bit(28)::bigint AS high,
               ('x' || substr(head_hash, 8, 8))::bit(32)::bigint AS low
        FROM sessions
    ) AS heads
);
