-- What a customer did on a day, for the app's home screen.
CREATE TABLE IF NOT EXISTS prod.user_activity (
  user_id bigint, activity_day string, phone string, payments bigint, last_seen timestamp
) USING hudi LOCATION '/lakehouse/warehouse/hudi/user_activity'
TBLPROPERTIES (type = 'cow', primaryKey = 'user_id,activity_day', preCombineField = 'last_seen');

INSERT INTO prod.user_activity
SELECT
  user_id, date_format(paid_at, 'yyyy-MM-dd') AS activity_day, phone, count(*) AS payments, max(paid_at) AS last_seen
FROM lake.prod.payments
GROUP BY user_id, date_format(paid_at, 'yyyy-MM-dd'), phone;
