-- A developer's clone: reads the production table's files.
CREATE OR REPLACE TABLE dev.customer_360_clone SHALLOW CLONE prod.customer_360
LOCATION '/lakehouse/dev/customer_360_clone';
