-- Spend per customer and day.
CREATE TABLE IF NOT EXISTS lake.analytics.daily_user_spend (
  user_id bigint, day date, spend decimal(22,2), payments bigint
) USING iceberg TBLPROPERTIES ('format-version' = '2');

INSERT OVERWRITE lake.analytics.daily_user_spend
SELECT user_id, CAST(paid_at AS DATE) AS day, sum(amount) AS spend, count(*) AS payments
FROM lake.prod.payments
GROUP BY user_id, CAST(paid_at AS DATE);
