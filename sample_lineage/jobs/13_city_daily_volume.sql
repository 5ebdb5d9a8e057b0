-- Volume per city and day: no key of a person, but made of everybody's payments.
CREATE TABLE IF NOT EXISTS lake.analytics.city_daily_volume (
  city string, day date, volume decimal(22,2), payments bigint
) USING iceberg TBLPROPERTIES ('format-version' = '2');

INSERT OVERWRITE lake.analytics.city_daily_volume
SELECT city, CAST(paid_at AS DATE) AS day, sum(amount) AS volume, count(*) AS payments
FROM lake.prod.payments
GROUP BY city, CAST(paid_at AS DATE);
