"""From a formula and a schema to scaled design columns, without a look at the rows."""
