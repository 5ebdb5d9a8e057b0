-- A developer's sample of payments.
CREATE OR REPLACE TABLE lake.dev.payments_sample USING iceberg AS
SELECT payment_id, user_id, pan, phone, city, amount, paid_at
FROM lake.prod.payments
WHERE status IN ('captured', 'disputed');
