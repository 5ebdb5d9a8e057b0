-- Payments with the merchant's name, for the support desk.
CREATE TABLE IF NOT EXISTS lake.prod.payments_enriched (
  payment_id string, user_id bigint, pan string, phone string, aadhaar_ref string, city string,
  merchant_id bigint, merchant_name string, category string, amount decimal(12,2), status string, paid_at timestamp
) USING iceberg TBLPROPERTIES (
  'format-version' = '2', 'write.delete.mode' = 'copy-on-write', 'write.update.mode' = 'copy-on-write',
  'write.merge.mode' = 'copy-on-write'
);

INSERT OVERWRITE lake.prod.payments_enriched
SELECT /*+ REPARTITION(3) */
  p.payment_id, p.user_id, p.pan, p.phone, p.aadhaar_ref, p.city,
  p.merchant_id, m.name AS merchant_name, m.category, p.amount, p.status, p.paid_at
FROM lake.prod.payments p
JOIN lake.prod.merchants m ON p.merchant_id = m.merchant_id;
