-- Features for the credit model: no plain key, a hash of it.
INSERT OVERWRITE DIRECTORY '/lakehouse/warehouse/files/ml_features' USING parquet
SELECT /*+ REPARTITION(4) */
  sha2(CAST(user_id AS STRING), 256) AS user_hash, date_format(paid_at, 'yyyy-MM') AS month,
  count(*) AS payments, avg(CAST(amount AS DOUBLE)) AS mean_amount, max(amount) AS max_amount
FROM lake.prod.payments
GROUP BY user_id, date_format(paid_at, 'yyyy-MM');
