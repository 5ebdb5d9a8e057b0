-- Scores per payment; large amounts are raised afterwards.
CREATE TABLE IF NOT EXISTS prod.fraud_signals (
  payment_id string, user_id bigint, pan string, score double, scored_at timestamp
) USING hudi LOCATION '/lakehouse/warehouse/hudi/fraud_signals'
TBLPROPERTIES (type = 'mor', primaryKey = 'payment_id', preCombineField = 'scored_at');

INSERT INTO prod.fraud_signals
SELECT payment_id, user_id, pan, CAST(amount AS DOUBLE) / 10000 AS score, paid_at AS scored_at
FROM lake.prod.payments;

UPDATE prod.fraud_signals SET score = score + 0.25 WHERE score > 0.3;
