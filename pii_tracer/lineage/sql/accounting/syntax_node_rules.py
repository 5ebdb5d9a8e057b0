"""What each part of a statement's syntax tree does for lineage: rules follow it, or it moves no data, by a reason.

A kind of part, or a clause of one, that stands in none of these lists is not understood: `audit` makes the answer
partial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

Kinds = tuple[type[exp.Expr], ...]
Clauses = Mapping[type[exp.Expression], str]

FOLLOWED: Clauses = {
    exp.Create: "this expression kind properties clone",
    exp.Schema: "this expressions",
    exp.Properties: "expressions",
    exp.ColumnDef: "constraints",
    exp.ColumnConstraint: "kind",
    exp.ComputedColumnConstraint: "this",
    exp.DefaultColumnConstraint: "this",
    exp.Insert: "with_ this expression conflict returning where by_name source",
    exp.OnConflict: "expressions where index_predicate",
    exp.Merge: "with_ this using on using_cond whens returning",
    exp.Whens: "expressions",
    exp.When: "condition then source",
    exp.Update: "with_ this expressions from_ where returning order limit",
    exp.Delete: "with_ this using where returning order limit",
    exp.Returning: "",
    exp.Copy: "this files kind",
    exp.LoadData: "this inpath",
    exp.Export: "this",
    exp.Cache: "this expression",
    exp.Into: "this",
    exp.Clone: "this",
    exp.ToTableProperty: "this",
    exp.Directory: "this",
    exp.Select: "with_ kind expressions distinct into from_ laterals joins connect prewhere where group having qualify"
    " windows distribute sort cluster order limit offset",
    exp.Subquery: "this alias with_ laterals joins pivots distribute sort cluster order limit offset",
    exp.Union: "with_ this expression by_name distribute sort cluster order limit offset",
    exp.Except: "with_ this expression by_name distribute sort cluster order limit offset",
    exp.Intersect: "with_ this expression by_name distribute sort cluster order limit offset",
    exp.Values: "expressions alias pivots order limit offset",
    exp.With: "expressions recursive",
    exp.CTE: "this alias scalar",
    exp.From: "this",
    exp.Table: "this alias db catalog laterals joins pivots rows_from",
    exp.Join: "this on using method side kind match_condition expressions",
    exp.Lateral: "this alias",
    exp.Unnest: "expressions alias offset",
    exp.TableFromRows: "this alias joins pivots",
    exp.Stream: "this",
    exp.Connect: "start connect nocycle",
    exp.Group: "expressions grouping_sets cube rollup all",
    exp.Pivot: "this alias expressions fields unpivot columns group",
    exp.Alter: "this actions",
    exp.AlterColumn: "using default",
    exp.AlterSet: "expressions location",
    exp.ModifyColumn: "this",
    exp.Star: "replace ilike",
    exp.Final: "this",
}
"""Clauses that rules of their own read. Tables, columns and functions in them are looked at one by one as well."""

_STORED = "how or where the target's rows are stored, not which they are"
_COUNT = "how many rows there are, not what is in them"
_FLAG = "whether the statement runs, or how"
_FORM = "how the text was written"
_HINT = "a hint to the engine"
_ROWS = "which rows of the table itself are taken"

WITHOUT_DATA: Mapping[str, Clauses] = {
    _STORED: {exp.Create: "indexes clustered", exp.Insert: "settings stored partition",
              exp.LoadData: "partition input_format serde",
              exp.Copy: "credentials format params", exp.Export: "connection options", exp.Select: "format settings",
              exp.Subquery: "format settings", exp.Cache: "options", exp.Directory: "local row_format",
              exp.Into: "temporary unlogged", exp.ComputedColumnConstraint: "persisted not_null data_type",
              exp.Table: "format pattern", exp.ColumnDef: "this kind position",
             exp.ColumnConstraint: "this"},
    _COUNT: {exp.Select: "sample", exp.Subquery: "sample", exp.Table: "sample", exp.TableFromRows: "sample",
             exp.Union: "distinct", exp.Except: "distinct", exp.Intersect: "distinct", exp.Group: "totals"},
    _FLAG: {exp.Create: "exists replace refresh unique concurrently no_schema_binding", exp.ColumnDef: "exists",
            exp.Insert: "overwrite exists alternative ignore default", exp.When: "matched", exp.Cache: "lazy",
            exp.OnConflict: "duplicate action conflict_keys constraint", exp.LoadData: "local overwrite temp",
            exp.Clone: "shallow copy", exp.CTE: "materialized"},
    "columns of a star that are left out or renamed": {exp.Star: "except_ rename"},
    _FORM: {exp.Join: "global_ directed", exp.Lateral: "view outer cross_apply ordinality", exp.Unnest: "explode_array",
            exp.Table: "only ordinality", exp.Union: "side kind on", exp.Except: "side kind on",
            exp.Intersect: "side kind on", exp.Pivot: "include_nulls default_on_null identify_pivot_strings "
            "prefixed_pivot_columns pivot_column_naming value_columns_first"},
    _HINT: {exp.Select: "hint options operation_modifiers locks", exp.Insert: "hint", exp.Update: "hint options",
            exp.Delete: "hint cluster", exp.Join: "hint", exp.Table: "hints indexed", exp.Subquery: "locks options",
            exp.Union: "locks options"},
    _ROWS: {exp.Table: "version when partition changes system_time"},
    "a column is called otherwise, or has another type (ALTER's own rule)": {
        exp.AlterColumn: "this dtype collate drop comment allow_null visible rename_to exists",
        exp.ModifyColumn: "rename_from",
        exp.AlterSet: "tablespace access_method file_format copy_options tag serde",
        exp.Alter: "kind exists only options cluster not_valid check cascade iceberg"},
    "the statement returns these rows, and writes them nowhere": {exp.Returning: "expressions"},
    "rows of these tables are removed, and none are added": {exp.Delete: "tables", exp.Insert: "using"},
}  # fmt: skip
"""Clauses that move no data, by the reason."""

TRANSPARENT: Kinds = (
    exp.Alias, exp.Aliases, exp.PivotAlias, exp.Tuple, exp.Interval, exp.IntervalSpan, exp.Lambda, exp.Kwarg,
    exp.PropertyEQ, exp.Ordered, exp.Order, exp.WithinGroup, exp.Filter, exp.IgnoreNulls, exp.RespectNulls,
    exp.AtTimeZone, exp.FromTimeZone, exp.Slice, exp.Distinct, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Where,
    exp.Having, exp.Qualify, exp.Limit, exp.Offset, exp.Fetch, exp.PreWhere, exp.Prior, exp.JSONKeyValue,
    exp.FormatJson, exp.Distribute, exp.Cluster, exp.Sort, exp.HavingMax, exp.Variadic, exp.Introducer, exp.Window,
    exp.QueryTransform, exp.ConditionalInsert, exp.MultitableInserts, exp.Comprehension, exp.JSONValue, exp.JSON,
    exp.WithOperator, exp.WithFill, exp.TranslateCharacters, exp.Condition,
)  # fmt: skip
"""Expressions and what holds them: values go through, so that what they are made of counts."""

QUIET: Mapping[str, Kinds] = {
    "a name or a word of the language": (
        exp.Identifier, exp.Var, exp.TableAlias, exp.TimeUnit, exp.LimitOptions, exp.WindowSpec,
        exp.JSONPathPart, exp.JSONPath, exp.Heredoc, exp.OnCondition, exp.OverflowTruncateBehavior, exp.National,
    ),
    "a type": (
        exp.DataType, exp.DataTypeParam, exp.PseudoType, exp.CharacterSet, exp.JSONColumnDef, exp.OpenJSONColumnDef,
        exp.JSONSchema, exp.XMLNamespace, exp.IntervalOp,
    ),
    "a constraint on the table's own values": (
        exp.Constraint, exp.PrimaryKey, exp.ForeignKey, exp.Reference, exp.Check, exp.CheckColumnConstraint,
        exp.NotNullColumnConstraint, exp.UniqueColumnConstraint, exp.PrimaryKeyColumnConstraint,
        exp.AutoIncrementColumnConstraint, exp.GeneratedAsIdentityColumnConstraint,
        exp.GeneratedAsRowColumnConstraint, exp.OnUpdateColumnConstraint, exp.PeriodForSystemTimeConstraint,
        exp.MaskingPolicyColumnConstraint, exp.ProjectionPolicyColumnConstraint,
        exp.NotForReplicationColumnConstraint, exp.AllowedValuesProperty, exp.ExcludeColumnConstraint,
        exp.WatermarkColumnConstraint, exp.AssumeColumnConstraint, exp.PathColumnConstraint,
    ),
    "how a column is stored or shown": (
        exp.CommentColumnConstraint, exp.CollateColumnConstraint, exp.CharacterSetColumnConstraint,
        exp.CompressColumnConstraint, exp.EncodeColumnConstraint, exp.BinaryColumnConstraint, exp.TitleColumnConstraint,
        exp.CaseSpecificColumnConstraint, exp.ClusteredColumnConstraint, exp.NonClusteredColumnConstraint,
        exp.DateFormatColumnConstraint, exp.InlineLengthColumnConstraint, exp.InvisibleColumnConstraint,
        exp.UppercaseColumnConstraint, exp.ZeroFillColumnConstraint, exp.IndexColumnConstraint,
    ),
    "how the target is stored, shared, secured or described": (
        exp.AggregateKeyProperty, exp.AlgorithmProperty, exp.AutoIncrementProperty, exp.AutoRefreshProperty,
        exp.BackupProperty, exp.BlockCompressionProperty, exp.BuildProperty, exp.CatalogProperty,
        exp.CharacterSetProperty, exp.ChecksumProperty, exp.ClusterProperty, exp.ClusteredByProperty,
        exp.CollateProperty, exp.ComputeProperty, exp.CopyGrantsProperty, exp.CopyTagsProperty,
        exp.DataBlocksizeProperty, exp.DataDeletionProperty, exp.DefinerProperty, exp.DistKeyProperty,
        exp.DistStyleProperty, exp.DistributedByProperty, exp.DuplicateKeyProperty, exp.DynamicProperty,
        exp.EmptyProperty, exp.EncodeProperty, exp.ExternalProperty, exp.FallbackProperty,
        exp.ForceProperty, exp.FreespaceProperty, exp.GlobalProperty, exp.HeapProperty, exp.HybridProperty,
        exp.IcebergProperty, exp.IncludeProperty, exp.InputOutputFormat, exp.IsolatedLoadingProperty,
        exp.JournalProperty, exp.LanguageProperty, exp.LikeProperty, exp.LocationProperty, exp.LockProperty,
        exp.LockingProperty, exp.LogProperty, exp.MaterializedProperty, exp.MergeBlockRatioProperty, exp.MergeTreeTTL,
        exp.NoPrimaryIndexProperty, exp.OnCluster, exp.OnCommitProperty, exp.OnProperty, exp.PartitionByListProperty,
        exp.PartitionByRangeProperty, exp.PartitionedByProperty, exp.RefreshTriggerProperty, exp.RollupProperty,
        exp.RowAccessProperty, exp.RowFormatProperty, exp.RowFormatDelimitedProperty, exp.RowFormatSerdeProperty,
        exp.SampleProperty, exp.SchemaCommentProperty, exp.SecureProperty, exp.SerdeProperties, exp.SetProperty,
        exp.SettingsProperty, exp.SharingProperty, exp.SortKeyProperty, exp.SqlSecurityProperty, exp.StabilityProperty,
        exp.StorageHandlerProperty, exp.StreamingTableProperty, exp.StrictProperty, exp.TableSpaceProperty, exp.Tags,
        exp.TemporaryProperty, exp.TransientProperty, exp.UniqueKeyProperty, exp.UnloggedProperty, exp.UuidProperty,
        exp.ViewAttributeProperty, exp.VolatileProperty, exp.WithDataProperty, exp.WithSchemaBindingProperty,
        exp.Partition, exp.Index, exp.IndexParameters, exp.Credentials, exp.CopyParameter,
    ),
    "a hint to the engine": (
        exp.Hint, exp.WithTableHint, exp.IndexTableHint, exp.JoinHint, exp.QueryOption, exp.Lock, exp.TableSample,
    ),
    "a moment": (exp.Version, exp.HistoricalData),
    "ALTER's own rule": (
        exp.RenameColumn, exp.AlterRename, exp.AddConstraint, exp.AddPartition, exp.DropPartition, exp.AlterDistStyle,
        exp.AlterIndex, exp.AlterModifySqlSecurity, exp.AlterSortKey, exp.Drop, exp.RenameIndex, exp.ReplaceColumns,
        exp.AlterSession, exp.SetItem,
    ),
}  # fmt: skip
"""Kinds of parts that move no data, by the reason; a query in one is looked at all the same."""

_ALL_QUIET = tuple(kind for kinds in QUIET.values() for kind in kinds)


def is_quiet(part: exp.Expression) -> bool:
    """Whether a part moves no data, whatever stands in it."""
    return isinstance(part, _ALL_QUIET)


def clauses_of(part: exp.Expression) -> Iterator[tuple[str, bool | None]]:
    """Names of the clauses that a part has, each with True: looked at; False: without data; None: not understood."""
    kind = type(part)
    followed = set(FOLLOWED[kind].split())
    quiet = {name for clauses in WITHOUT_DATA.values() for name in clauses.get(kind, "").split()}
    for name, value in part.args.items():
        if value:
            yield name, True if name in followed else False if name in quiet else None
