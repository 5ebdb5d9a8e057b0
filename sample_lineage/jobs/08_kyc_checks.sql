-- Result of the identity check per person; carries identifiers, no user id.
CREATE TABLE IF NOT EXISTS lake.risk.kyc_checks (pan string, aadhaar_ref string, result string)
USING iceberg TBLPROPERTIES ('format-version' = '2');

INSERT OVERWRITE lake.risk.kyc_checks
SELECT pan, aadhaar_ref, CASE WHEN sum(amount) > 50000 THEN 'full' ELSE 'basic' END AS result
FROM lake.prod.payments
GROUP BY pan, aadhaar_ref;
