-- Shops by category and city: of merchants only.
CREATE TABLE lake.analytics.shops USING iceberg AS
SELECT category, city, count(*) AS shops FROM lake.prod.merchants GROUP BY category, city;

INSERT OVERWRITE DIRECTORY '/lakehouse/warehouse/files/shop_list' USING parquet
SELECT merchant_id, upper(name) AS name FROM lake.prod.merchants;
