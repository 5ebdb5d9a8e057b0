-- Nightly file for the lending partner.
INSERT OVERWRITE DIRECTORY '/lakehouse/warehouse/files/partner_export' USING csv
OPTIONS (header 'true', compression 'gzip')
SELECT /*+ REPARTITION(3) */ regexp_replace(phone, '[^0-9]', '') AS phone_norm, pan, amount
FROM lake.prod.payments
WHERE status = 'captured';
