-- The stream's landing table: the payer is a struct.
CREATE TABLE IF NOT EXISTS lake.prod.payment_events (
  payer struct<id: bigint, phone: string>, amount decimal(12,2), paid_at timestamp
) USING iceberg TBLPROPERTIES ('format-version' = '2');

INSERT OVERWRITE lake.prod.payment_events
SELECT /*+ REPARTITION(2) */ named_struct('id', user_id, 'phone', phone) AS payer, amount, paid_at
FROM lake.prod.payments;
