-- A developer's clone: reads the production table's files of the day it was made.
CREATE TABLE IF NOT EXISTS dev.customer_360_clone SHALLOW CLONE prod.customer_360
LOCATION '/lakehouse/dev/customer_360_clone';
