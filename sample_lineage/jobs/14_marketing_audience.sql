-- Audience for the advertising network: hashed phone numbers, two hops from the payments.
CREATE TABLE IF NOT EXISTS prod.marketing_audience (phone_hash string, city string, segment string)
USING delta LOCATION '/lakehouse/warehouse/delta/marketing_audience';

INSERT OVERWRITE prod.marketing_audience
SELECT sha2(phone_norm, 256) AS phone_hash, city, CASE WHEN total_spend > 20000 THEN 'gold' ELSE 'regular' END AS segment
FROM prod.customer_360;
