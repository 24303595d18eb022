//! Every option of RocksDB that weir sets, each with its reason.

use super::range::KeyRange;
use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, FlushOptions, LogLevel, Options, ReadOptions, SliceTransform,
    WriteOptions,
};

const MIB: usize = 1 << 20;

/// Memory for blocks, indexes and filters of files, all in one bounded cache.
const BLOCK_CACHE_BYTES: usize = 64 * MIB;
/// A checkpoint is at most about this long, so that it fills one memtable.
const MEMTABLE_BYTES: usize = 64 * MIB;
/// Family byte and the 8 bytes after it: the channel in `extents` and `tasks`, most of a hash or a bucket elsewhere.
pub(super) const BLOOM_PREFIX_BYTES: usize = 1 + 8;
/// Most writing of flushes and compactions together.
const BACKGROUND_BYTES_PER_SECOND: i64 = 96 << 20;

/// Options of the database.
pub(super) fn database() -> Options {
    let mut options = Options::default();

    // Truth. Any mismatch stops writes instead of being worked around; with one column family every flush is atomic by
    // itself, and atomic flush keeps it so should a second one ever come. The store's own log is off in `writing`.
    options.set_paranoid_checks(true);
    options.set_atomic_flush(true);

    // Memory. One memtable fills while the one before it is flushed; a single thread writes, so the locks for
    // concurrent insertion would be paid for nothing.
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_max_write_buffer_number(2);
    options.set_allow_concurrent_memtable_write(false);
    options.set_block_based_table_factory(&tables());

    // Handles. Segments and clients need theirs; the total of the broker stays below 512.
    options.set_max_open_files(128);

    // Shape. Small sizes for a store of some GiB: files of 32 MiB are compacted in well under a second each.
    options.set_target_file_size_base(32 * MIB as u64);
    options.set_max_bytes_for_level_base(128 * MIB as u64);
    // Levels sized from the last one upward: less space lost to rows that were overwritten.
    options.set_level_compaction_dynamic_level_bytes(true);
    // The one compression in use: cheap enough for every level.
    options.set_compression_type(DBCompressionType::Lz4);
    // Scans along one channel or task skip files without it.
    options.set_prefix_extractor(SliceTransform::create_fixed_prefix(BLOOM_PREFIX_BYTES));
    // Timers and settles die from the front of their ranges: files full of tombstones are compacted early, so that no
    // scan has to walk over them.
    options.add_compact_on_deletion_collector_factory(4096, 1024, 0.5);

    // Company. Two background threads at most, and a share of the disk that leaves the journal's syncs their room;
    // files are handed to the disk steadily instead of in one wave at their end.
    options.set_max_background_jobs(2);
    options.set_ratelimiter(BACKGROUND_BYTES_PER_SECOND, 100_000, 10);
    options.set_bytes_per_sync(MIB as u64);

    // Opening is bound by what is there, not by statistics nobody reads.
    options.set_skip_stats_update_on_db_open(true);
    options.set_max_manifest_file_size(16 * MIB);

    // Idle costs nothing: no periodic dumps, no rewriting of files for their age alone.
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_periodic_compaction_seconds(0);
    options.set_ttl(0);

    // RocksDB's own text log, bounded; what matters reaches ours as an error.
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(4 * MIB);
    options.set_keep_log_file_num(2);
    options
}

/// Options of the files.
fn tables() -> BlockBasedOptions {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_lru_cache(BLOCK_CACHE_BYTES));
    // Indexes and filters count against the same bound; those of fresh files stay, since every look-up meets them.
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_cache_index_and_filter_blocks_with_high_priority(true);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
    // Whole keys for the look-ups of ids that are mostly new (one in a hundred reads a block in vain), and prefixes.
    tables.set_bloom_filter(10.0, false);
    tables.set_whole_key_filtering(true);
    tables.set_optimize_filters_for_memory(true);
    // Rows are small and read one by one; larger blocks would halve the index but double what each read unpacks.
    tables.set_block_size(8 * 1024);
    tables
}

/// Options of a point read.
pub(super) fn point_read() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options
}

/// Options of a walk over `range`. Bounded on both sides, so that it never meets the tombstones or rows of another
/// family. `one_prefix`: all keys of the range share their first [`BLOOM_PREFIX_BYTES`], and the walk begins inside it;
/// only then may filters of prefixes be asked.
pub(super) fn walk(range: KeyRange, one_prefix: bool) -> ReadOptions {
    let mut options = point_read();
    options.set_iterate_lower_bound(range.from);
    options.set_iterate_upper_bound(range.below);
    options.set_prefix_same_as_start(one_prefix);
    options.set_total_order_seek(!one_prefix);
    options
}

/// Options of a checkpoint's write: no log, because the flush that follows makes it durable and the journal holds all
/// that is newer.
pub(super) fn writing() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

/// Options of a checkpoint's flush: it returns when the file, the manifest and the folder are synced.
pub(super) fn flushing() -> FlushOptions {
    let mut options = FlushOptions::default();
    options.set_wait(true);
    options
}
