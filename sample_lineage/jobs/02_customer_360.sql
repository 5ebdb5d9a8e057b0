-- One row per customer, kept up to date by merging.
CREATE TABLE IF NOT EXISTS prod.customer_360 (
  customer_id bigint, pan string, phone_norm string, city string, total_spend decimal(22,2), payments bigint
) USING delta LOCATION '/lakehouse/warehouse/delta/customer_360'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');

MERGE INTO prod.customer_360 t
USING (
  SELECT /*+ REPARTITION(2) */
    user_id AS customer_id, pan, regexp_replace(phone, '[^0-9]', '') AS phone_norm, city,
    sum(amount) AS total_spend, count(*) AS payments
  FROM lake.prod.payments
  GROUP BY user_id, pan, phone, city
) s
ON t.customer_id = s.customer_id
WHEN MATCHED AND t.payments <> s.payments THEN UPDATE SET
  t.pan = s.pan, t.phone_norm = s.phone_norm, t.city = s.city, t.total_spend = s.total_spend, t.payments = s.payments
WHEN NOT MATCHED THEN INSERT (customer_id, pan, phone_norm, city, total_spend, payments)
  VALUES (s.customer_id, s.pan, s.phone_norm, s.city, s.total_spend, s.payments);
