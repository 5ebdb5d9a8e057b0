-- Disputed payments; the payment is the only way back to the customer.
CREATE TABLE IF NOT EXISTS prod.disputes (payment_id string, reason string, amount decimal(12,2))
USING delta LOCATION '/lakehouse/warehouse/delta/disputes';

INSERT OVERWRITE prod.disputes
SELECT payment_id, CASE WHEN amount > 5000 THEN 'high_value' ELSE 'not_recognised' END AS reason, amount
FROM lake.prod.payments
WHERE status = 'disputed';
