"""An invented dbt project of any size: a shop whose customers are in every fourth table or so."""

from __future__ import annotations

from pathlib import Path

PROJECT = """\
name: shop
version: "1.0"
profile: shop
model-paths: [models]
vars:
  first_day: "2024-01-01"
models:
  shop:
    staging: {+materialized: view}
    marts: {+materialized: table}
"""
SOURCES = """\
version: 2
sources:
  - name: raw
    tables:
      - name: customers
        columns:
          - {name: customer_id, data_type: bigint}
          - {name: email, data_type: string}
          - {name: phone, data_type: string}
          - {name: city, data_type: string}
          - {name: plan, data_type: string}
      - name: orders
        columns:
          - {name: order_id, data_type: bigint}
          - {name: customer_id, data_type: bigint}
          - {name: product_id, data_type: bigint}
          - {name: amount, data_type: double}
          - {name: ordered_at, data_type: timestamp}
      - name: products
        columns:
          - {name: product_id, data_type: bigint}
          - {name: title, data_type: string}
          - {name: price, data_type: double}
"""
MACROS = """\
{% macro cents(column) -%}
cast({{ column }} * 100 as bigint)
{%- endmacro %}

{% macro contact_key(column) -%}
sha2(concat('shop', lower({{ column }})), 256)
{%- endmacro %}
"""
SNAPSHOT = """\
{% snapshot customers_history %}
{{ config(unique_key='customer_id', strategy='check', check_cols=['city']) }}
select customer_id, email, city from {{ source('raw', 'customers') }}
{% endsnapshot %}
"""
SEED = "country,zone\nIN,asia\nDE,europe\n"
ESTATE = """\
version: 1
estate: shop
environment: local
catalogs:
  raw: {type: declared, tables: []}
roots: [lake]
lineage: {dialect: spark}
subjects:
  - name: customer
    source: raw.customers
    key: customer_id
    identifiers:
      - {column: email, category: email}
      - {column: phone, category: phone}
    tables:
      - {table: raw.orders, key: customer_id, record_keys: [order_id]}
retention:
  pii_days: 7
"""
DOMAIN = {
    "staging/stg_customers_{n}.sql": """\
-- every customer, as the shop has them
with source as (
    select * from {{{{ source('raw', 'customers') }}}}
)
select
    customer_id,
    email,
    phone,
    city,
    plan
from source
""",
    "staging/stg_orders_{n}.sql": """\
select
    order_id,
    customer_id,
    product_id,
    {{{{ cents('amount') }}}} as amount_cents,
    ordered_at
from {{{{ source('raw', 'orders') }}}}
where ordered_at >= '{{{{ var("first_day") }}}}'
""",
    "staging/stg_products_{n}.sql": "select product_id, title, price from {{{{ source('raw', 'products') }}}}\n",
    "marts/dim_customers_{n}.sql": """\
select
    c.customer_id,
    c.email,
    c.city,
    count(o.order_id) as orders
from {{{{ ref('stg_customers_{n}') }}}} as c
left join {{{{ ref('stg_orders_{n}') }}}} as o on o.customer_id = c.customer_id
group by c.customer_id, c.email, c.city
""",
    "marts/fct_orders_{n}.sql": """\
{{{{ config(materialized='incremental', unique_key='order_id') }}}}
select o.order_id, o.customer_id, o.amount_cents, p.title, o.ordered_at
from {{{{ ref('stg_orders_{n}') }}}} as o
join {{{{ ref('stg_products_{n}') }}}} as p on p.product_id = o.product_id
{{% if is_incremental() %}}
where o.ordered_at > (select max(ordered_at) from {{{{ this }}}})
{{% endif %}}
""",
    "marts/mailing_{n}.sql": """\
select customer_id, {{{{ contact_key('email') }}}} as contact_key, plan
from {{{{ ref('stg_customers_{n}') }}}}
""",
    "marts/daily_{n}.sql": """\
{{{{ config(materialized='incremental', incremental_strategy='append') }}}}
select cast(ordered_at as date) as day, sum(amount_cents) as cents, count(*) as orders
from {{{{ ref('stg_orders_{n}') }}}}
group by cast(ordered_at as date)
""",
    "marts/products_{n}.sql": "select product_id, title, price from {{{{ ref('stg_products_{n}') }}}}\n",
}
"""The models of one part of the shop, by their paths."""


def write_project(folder: Path, models: int) -> None:
    """Write the project with at least so many models, and an estate file beside it."""
    _write(folder, "dbt_project.yml", PROJECT)
    _write(folder, "models/sources.yml", SOURCES)
    _write(folder, "macros/shop.sql", MACROS)
    _write(folder, "snapshots/customers_history.sql", SNAPSHOT)
    _write(folder, "seeds/zones.csv", SEED)
    for number in range(-(-models // len(DOMAIN))):
        for path, text in DOMAIN.items():
            _write(folder, "models/" + path.format(n=number), text.format(n=number))


def _write(folder: Path, path: str, text: str) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
