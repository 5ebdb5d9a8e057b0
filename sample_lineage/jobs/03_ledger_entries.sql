-- The ledger knows customers by account number; its change data feed goes to the auditors.
CREATE TABLE IF NOT EXISTS prod.ledger_entries (
  account_no string, direction string, amount decimal(12,2), status string, booked_at timestamp, settled boolean
) USING delta LOCATION '/lakehouse/warehouse/delta/ledger_entries'
TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'false');

INSERT OVERWRITE prod.ledger_entries
SELECT /*+ REPARTITION(3) */
  CAST(user_id AS STRING) AS account_no, 'debit' AS direction, amount, status, paid_at AS booked_at, false AS settled
FROM lake.prod.payments;

UPDATE prod.ledger_entries SET settled = true WHERE status = 'captured';
