-- Payloads as they were sent to merchants: JSON in a string.
CREATE TABLE IF NOT EXISTS prod.event_payloads (payload string, merchant_id bigint)
USING delta LOCATION '/lakehouse/warehouse/delta/event_payloads';

INSERT OVERWRITE prod.event_payloads
SELECT /*+ REPARTITION(2) */
  to_json(named_struct('user_id', user_id, 'pan', pan, 'amount', amount)) AS payload, merchant_id
FROM lake.prod.payments;
